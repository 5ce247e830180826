"""What is told of worked cases, look by look."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from alerts.lifecycle import Audience, Policy, level_of, step, withdraw
from alerts.looks import Domain, Look, late
from alerts.model import Cause, Condition, Digest, Kind, Severity
from alerts.mutes import Mute

START = datetime(2026, 1, 10, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
EAST, WEST = "aws/us-east-1", "aws/eu-west-1"
CHAT = Policy(audiences=(Audience(name="chat"),))


def leak(instance_id, *, scope=EAST, severity=Severity.WARNING, **data):
    return Condition(cause=Cause.LEAK, subject=f"{scope}/{instance_id}", severity=severity, data=data)


def whole(cause, severity=Severity.WARNING):
    return Condition(cause=cause, severity=severity)


def sweep(after=timedelta(0), scopes=(EAST, WEST)):
    return Look(domain=Domain.AUDIT, at=START + after, scopes=frozenset(scopes), complete=set(scopes) == {EAST, WEST})


def passed(after=timedelta(0), *, complete=True, judged=True, last_complete=None):
    scopes = frozenset({EAST, WEST}) if complete else frozenset()
    last = None if last_complete is None else START + last_complete
    judged = complete and judged
    return Look(
        domain=Domain.RECONCILE,
        at=START + after,
        scopes=scopes,
        complete=complete,
        judged=judged,
        last_complete=last,
    )


def play(*looks, policy=CHAT):
    """Return, of each look, what was told: pairs of kind and key."""
    book, told = {}, []
    for look, conditions in looks:
        done = step(book, conditions, look, policy)
        book = done.book
        told.append([(str(d.notification.kind), d.notification.condition.key) for d in done.due])
    return told


def test_case_a24_a_leak_is_told_once_in_three_sweeps():
    found = [leak("i-9"), leak("i-10")]

    told = play((sweep(), found), (sweep(5 * MINUTE), found), (sweep(10 * MINUTE), found))

    assert told == [[("firing", "leak/aws/us-east-1/i-10"), ("firing", "leak/aws/us-east-1/i-9")], [], []]


def test_case_a25_restarts_send_nothing_again_and_silence_nothing():
    both = [leak("i-9"), leak("i-11")]

    told = play((sweep(), both[:1]), (sweep(), both[:1]), (sweep(MINUTE), both), (sweep(DAY + MINUTE), both))

    assert [[key[-4:].strip("/") for _, key in step] for step in told] == [["i-9"], [], ["i-11"], ["i-11", "i-9"]]
    assert [kind for kind, _ in told[-1]] == ["reminder", "reminder"]


def test_a_failed_scope_resolves_nothing_and_the_others_go_on():
    both = [leak("i-1"), leak("i-2", scope=WEST)]

    told = play((sweep(), both), (sweep(MINUTE, [WEST]), []), (sweep(2 * MINUTE), []))

    assert told[1:] == [[("resolved", "leak/aws/eu-west-1/i-2")], [("resolved", "leak/aws/us-east-1/i-1")]]


def test_a_reconcile_pass_says_nothing_about_a_leak():
    told = play((sweep(), [leak("i-1")]), (passed(MINUTE), []))

    assert told[1] == []


def test_a_condition_that_comes_back_is_told_again():
    told = play((sweep(), [leak("i-1")]), (sweep(MINUTE), []), (sweep(2 * MINUTE), [leak("i-1")]))

    assert [kind for ((kind, _),) in told] == ["firing", "resolved", "firing"]


def test_another_age_is_no_new_alert():
    told = play((sweep(), [leak("i-1", age_seconds=1)]), (sweep(MINUTE), [leak("i-1", age_seconds=61)]))

    assert told[1] == []


def test_a_severity_that_the_caller_raises_is_told_at_once_and_once():
    worse = [leak("i-1", severity=Severity.CRITICAL)]

    told = play((sweep(), [leak("i-1")]), (sweep(MINUTE), worse), (sweep(2 * MINUTE), worse))

    assert told[1:] == [[("escalated", "leak/aws/us-east-1/i-1")], []]


def test_an_alert_that_lasts_is_raised_once_and_critical_stays_critical():
    both = [leak("i-1"), whole(Cause.BREAKER_OPEN, Severity.CRITICAL)]
    policy = Policy(audiences=CHAT.audiences, realert_after=30 * DAY)

    done = step(step({}, both, passed(), policy).book, both, passed(3 * DAY), policy)
    again = step(done.book, both, passed(4 * DAY), policy)

    assert [(d.notification.kind, d.notification.condition.severity) for d in done.due] == [
        (Kind.ESCALATED, Severity.CRITICAL)
    ]
    assert again.due == ()


def test_a_channel_for_the_severe_first_hears_of_what_is_raised():
    policy = Policy(audiences=(Audience(name="pager", min_severity=Severity.CRITICAL),))
    looks = [(sweep(), [leak("i-1")]), (sweep(3 * DAY), [leak("i-1")]), (sweep(3 * DAY + MINUTE), [])]

    told = play(*looks, policy=policy)

    assert [[kind for kind, _ in step] for step in told] == [[], ["firing"], ["resolved"]]


def test_a_new_channel_is_told_what_holds_already():
    before = step({}, [leak("i-1")], sweep(), CHAT)
    both = Policy(audiences=(Audience(name="chat"), Audience(name="mail")))

    after = step(before.book, [leak("i-1")], sweep(MINUTE), both)

    assert [(d.channel, d.notification.kind) for d in after.due] == [("mail", Kind.FIRING)]


def test_a_channel_that_is_no_longer_configured_is_sent_nothing():
    before = step({}, [leak("i-1")], sweep(), CHAT)

    after = step(before.book, [], sweep(MINUTE), Policy(audiences=(Audience(name="mail"),)))

    assert after.due == ()


def test_the_breaker_is_over_only_when_it_was_asked():
    opened = [whole(Cause.BREAKER_OPEN, Severity.CRITICAL)]

    told = play((passed(), opened), (passed(MINUTE, judged=False), []), (passed(2 * MINUTE), []))

    assert told[1:] == [[], [("resolved", "breaker_open")]]


def test_an_incomplete_pass_resolves_nothing():
    told = play((passed(), [whole(Cause.BLIND)]), (passed(MINUTE, complete=False), []))

    assert told[1] == []


def test_a_complete_look_elsewhere_resolves_nothing_here():
    orphan = Condition(cause=Cause.PROTECTED_ORPHAN, subject=f"{WEST}/i-1", severity=Severity.WARNING)
    narrowed = replace(passed(MINUTE), scopes=frozenset({EAST}))

    told = play((passed(), [orphan]), (narrowed, []), (passed(2 * MINUTE), []))

    assert told[1:] == [[], [("resolved", "protected_orphan/aws/eu-west-1/i-1")]]


def test_a_listing_that_fails_is_told_after_a_quarter_of_an_hour_without_a_look():
    failing = [whole(Cause.LISTING_INCOMPLETE)]
    times = [MINUTE, 14 * MINUTE, 15 * MINUTE]

    told = play(*((passed(at, complete=False, last_complete=timedelta(0)), failing) for at in times))

    assert told == [[], [], [("firing", "listing_incomplete")]]


def test_a_listing_that_never_worked_counts_from_its_first_failure():
    failing = [whole(Cause.LISTING_INCOMPLETE)]

    told = play(*((passed(at, complete=False), failing) for at in (MINUTE, 15 * MINUTE, 16 * MINUTE)))

    assert told == [[], [], [("firing", "listing_incomplete")]]


def test_a_failure_that_passed_by_itself_is_never_told():
    failing = passed(MINUTE, complete=False, last_complete=timedelta(0))

    done = step({}, [whole(Cause.CLOCK)], failing, CHAT)
    after = step(done.book, [], passed(2 * MINUTE), CHAT)

    assert (done.due, done.standing, after.due, after.ended, after.book) == ((), (), (), (), {})


def test_passes_are_late_after_five_intervals_and_no_longer_when_one_ended():
    assert late(START, START + 299 * timedelta(seconds=1), MINUTE) == ()
    (condition,) = late(START, START + 5 * MINUTE, MINUTE)
    watched = [Look(domain=Domain.PACE, at=START + n * MINUTE, complete=True) for n in (5, 6)]

    told = play((watched[0], [condition]), (passed(6 * MINUTE), []), (watched[1], []))

    assert told == [[("firing", "late")], [], [("resolved", "late")]]


def mute(pattern, until=HOUR):
    return Policy(audiences=CHAT.audiences, mutes=(Mute(pattern=pattern, until=START + until, reason="known"),))


def test_what_is_muted_is_told_when_the_mute_ends_if_it_still_holds():
    told = play(
        (sweep(), [leak("i-1"), leak("i-2")]),
        (sweep(MINUTE), [leak("i-2")]),
        (sweep(HOUR), [leak("i-2")]),
        policy=mute("leak/*"),
    )

    assert told == [[], [], [("firing", "leak/aws/us-east-1/i-2")]]


def test_a_mute_hides_reminders_but_no_resolution():
    book = step({}, [leak("i-1")], sweep(), CHAT).book
    muted = mute("leak/aws/us-east-1/i-1", until=9 * DAY)

    reminded = step(book, [leak("i-1")], sweep(2 * DAY), muted)
    resolved = step(reminded.book, [], sweep(2 * DAY + MINUTE), muted)

    assert reminded.due == ()
    assert [d.notification.kind for d in resolved.due] == [Kind.RESOLVED]


def test_a_mute_without_a_star_means_one_key():
    told = play((sweep(), [leak("i-1"), leak("i-11")]), policy=mute("leak/aws/us-east-1/i-1"))

    assert told == [[("firing", "leak/aws/us-east-1/i-11")]]


def test_what_is_muted_does_not_stand():
    done = step({}, [leak("i-1"), leak("i-2")], sweep(), mute("*i-1"))

    assert [s.condition.key[-3:] for s in done.standing] == ["i-1", "i-2"]
    assert step({}, [leak("i-1")], sweep(), mute("*")).standing == ()


def test_more_new_alerts_than_wanted_are_one_digest_with_figures():
    found = [leak(f"i-{n:02}", scope=EAST if n % 3 else WEST) for n in range(21)]
    found.append(whole(Cause.BREAKER_OPEN, Severity.CRITICAL))

    done = step({}, found, passed(), CHAT)
    swept = step(done.book, found, sweep(MINUTE), CHAT)

    assert done.due == step({}, found, passed(), CHAT).due
    (due,) = done.due
    assert isinstance(due.notification, Digest)
    assert [(t.cause, t.scope, t.count) for t in due.notification.tallies] == [
        (Cause.BREAKER_OPEN, "", 1),
        (Cause.LEAK, WEST, 7),
        (Cause.LEAK, EAST, 14),
    ]
    assert due.notification.first[0].condition.cause is Cause.BREAKER_OPEN
    assert (due.notification.severity, len(due.notification.first)) == (Severity.CRITICAL, 10)
    assert swept.due == ()


def test_as_many_as_wanted_are_told_each():
    done = step({}, [leak(f"i-{n}") for n in range(20)], sweep(), CHAT)

    assert {d.notification.kind for d in done.due} == {Kind.FIRING}
    assert len(done.due) == 20


def test_a_raised_alert_ends_as_what_it_was_for_those_that_are_told_levels():
    before = step({}, [leak("i-1")], sweep(), CHAT)

    after = step(before.book, [leak("i-1", severity=Severity.CRITICAL)], sweep(MINUTE), CHAT)

    assert [s.condition.severity for s in after.standing] == [Severity.CRITICAL]
    assert [s.condition.severity for s in after.ended] == [Severity.WARNING]


def test_what_a_failed_scope_showed_before_still_stands():
    before = step({}, [leak("i-1"), leak("i-2", scope=WEST)], sweep(), CHAT)

    after = step(before.book, [], sweep(MINUTE, [WEST]), CHAT)

    assert [s.condition.key for s in after.standing] == ["leak/aws/us-east-1/i-1"]
    assert [s.condition.key for s in after.ended] == ["leak/aws/eu-west-1/i-2"]


def test_a_clock_that_ran_ahead_does_not_silence_the_reminders():
    book = step({}, [leak("i-1")], sweep(300 * DAY), CHAT).book
    book = step(book, [leak("i-1")], sweep(), CHAT).book

    done = step(book, [leak("i-1")], sweep(DAY), CHAT)

    assert [d.notification.kind for d in done.due] == [Kind.REMINDER]


def test_a_scope_that_was_dropped_is_told_as_no_longer_watched():
    book = step({}, [leak("i-1"), leak("i-2", scope=WEST)], sweep(), CHAT).book

    done = withdraw(book, frozenset({WEST}), CHAT, START + MINUTE)

    (due,) = done.due
    assert (due.notification.kind, due.notification.condition.key) == (Kind.RESOLVED, "leak/aws/eu-west-1/i-2")
    assert due.notification.condition.data["ended"] == "its scope is no longer looked at"
    assert list(done.book) == ["leak/aws/us-east-1/i-1"]
    assert [s.condition.key for s in done.ended] == ["leak/aws/eu-west-1/i-2"]


def test_of_one_key_the_most_severe_condition_counts():
    twice = [leak("i-1", severity=Severity.CRITICAL), leak("i-1")]

    done = step({}, twice, sweep(), CHAT)

    assert [d.notification.condition.severity for d in done.due] == [Severity.CRITICAL]


def test_a_channel_holds_what_is_severe_enough_for_it():
    pager = Audience(name="pager", min_severity=Severity.CRITICAL)
    done = step({}, [leak("i-1"), leak("i-2", severity=Severity.CRITICAL)], sweep(), CHAT)
    lowered = step(done.book, [leak("i-2")], sweep(DAY), CHAT)

    holds = level_of(done, pager, at=START, until=START + HOUR)
    then = level_of(lowered, pager, at=START + DAY, until=START + 2 * DAY)

    assert ([s.condition.key for s in holds.standing], holds.ended) == (["leak/aws/us-east-1/i-2"], ())
    assert ([s.condition.key for s in then.ended], then.standing) == (["leak/aws/us-east-1/i-2"], ())


def test_a_delayed_cause_that_was_told_stands_until_it_is_gone():
    late_pass = [whole(Cause.DEADLINE)]
    told = step({}, late_pass, passed(15 * MINUTE, complete=False, last_complete=timedelta(0)), CHAT)

    seen_whole = step(told.book, late_pass, passed(16 * MINUTE, last_complete=16 * MINUTE), CHAT)

    assert [s.condition.key for s in seen_whole.standing] == ["deadline"]


def test_a_severity_that_goes_down_and_up_again_is_no_news():
    critical = [leak("i-1", severity=Severity.CRITICAL)]

    told = play(
        (sweep(), critical),
        (sweep(HOUR), [leak("i-1")]),
        (sweep(2 * HOUR), critical),
    )

    assert [[kind for kind, _ in step] for step in told] == [["firing"], [], []]


def test_a_machine_that_is_stopped_every_night_is_one_alert():
    by_day, by_night = [leak("i-1")], [leak("i-1", severity=Severity.INFO)]
    book, kinds, ended, standing = {}, [], [], []
    for hours in range(0, 72, 12):
        done = step(book, by_day if hours % 24 == 0 else by_night, sweep(hours * HOUR), CHAT)
        book = done.book
        kinds += [d.notification.kind for d in done.due]
        ended += done.ended
        standing += [[s.condition.severity for s in done.standing]]

    assert kinds == [Kind.FIRING, Kind.REMINDER, Kind.REMINDER]
    assert ended == []
    assert standing == [[Severity.WARNING]] * 6


def test_a_machine_that_stays_stopped_is_severe_for_as_long_as_a_reminder_takes():
    stopped = [leak("i-1", severity=Severity.INFO)]
    looks = (HOUR, DAY - MINUTE, DAY, DAY + HOUR)
    book, standing, ended = step({}, [leak("i-1")], sweep(), CHAT).book, [], []
    for after in looks:
        done = step(book, stopped, sweep(after), CHAT)
        book = done.book
        standing += [s.condition.severity for s in done.standing]
        ended += [(after, s.condition.severity) for s in done.ended]

    assert standing == [Severity.WARNING, Severity.WARNING, Severity.INFO, Severity.INFO]
    assert ended == [(DAY, Severity.WARNING)]


def test_what_rises_again_after_it_was_less_severe_for_long_enough_is_news():
    critical, lower = [leak("i-1", severity=Severity.CRITICAL)], [leak("i-1")]

    told = play(
        (sweep(), critical),
        (sweep(DAY - MINUTE), lower),
        (sweep(DAY), lower),
        (sweep(DAY + HOUR), critical),
        (sweep(DAY + 2 * HOUR), critical),
    )

    assert [[kind for kind, _ in step] for step in told] == [["firing"], [], ["reminder"], ["escalated"], []]


def test_a_clock_that_ran_ahead_does_not_keep_an_alert_severe():
    book = step({}, [leak("i-1")], sweep(300 * DAY), CHAT).book
    stopped = [leak("i-1", severity=Severity.INFO)]
    book = step(book, stopped, sweep(), CHAT).book

    done = step(book, stopped, sweep(DAY), CHAT)

    assert [s.condition.severity for s in done.standing] == [Severity.INFO]


def test_two_reminders_are_two_things_and_the_same_one_is_the_same():
    found = [leak("i-1")]
    book = step({}, found, sweep(), CHAT).book
    first = step(book, found, sweep(DAY), CHAT)
    repeated = step(book, found, sweep(DAY), CHAT)
    second = step(first.book, found, sweep(2 * DAY), CHAT)

    ids = [done.due[0].notification.id for done in (first, repeated, second)]

    assert ids[0] == ids[1] != ids[2]
