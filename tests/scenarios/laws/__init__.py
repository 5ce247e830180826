"""What must never be seen, at any moment of any case. Each law returns its breaches in words; none is good.

`EVERYWHERE` holds of every case. The others are those that a case names under `never`, besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.scenarios.evidence import Evidence
from tests.scenarios.laws.deciding import (
    closes_the_breaker_itself,
    gets_an_age_wrong,
    judges_what_is_not_ours,
    overlooks_a_machine,
    reads_only_some_rows,
    reads_the_registry_first,
    refuses_an_empty_registry,
    stops_at_an_empty_page,
    stumbles_over_a_naive_time,
    takes_a_lock_for_an_empty_registry,
    takes_the_first_few,
    tracks_without_a_live_row,
    unprotects_by_a_bad_time,
)
from tests.scenarios.laws.sending import (
    acts_before_the_account_is_proved,
    acts_on_a_refusal,
    acts_while_a_region_is_unseen,
    changes_more_than_it_may,
    ends_a_protected_machine,
    ends_what_nobody_owns,
    goes_on_after_a_throttle,
    hammers_one_machine,
    makes_a_group_relaunch,
    names_two_machines_in_one_request,
    sends_a_change_in_a_rehearsal,
    sends_a_change_in_an_audit,
    sends_without_an_intent,
    skips_the_last_look,
    takes_no_time_for_old_age,
)
from tests.scenarios.laws.showing import begins_a_counter_at_one, counts_what_is_not_ours, names_what_is_gone
from tests.scenarios.laws.telling import (
    blames_the_listing,
    calls_our_own_a_leak,
    counts_an_end_that_was_undone,
    counts_one_end_twice,
    dies_of_a_lock,
    forgets_when_it_first_saw,
    learns_from_an_incomplete_look,
    leaves_intents_of_a_rehearsal,
    lets_one_spoil_the_rest,
    speaks_of_a_gone_machine,
    takes_accepted_for_gone,
    tells_other_than_the_cloud,
    touches_the_registry,
)

Law = Callable[[Evidence], Iterable[str]]

EVERYWHERE: tuple[Law, ...] = (
    acts_while_a_region_is_unseen,
    acts_on_a_refusal,
    acts_before_the_account_is_proved,
    changes_more_than_it_may,
    sends_a_change_in_a_rehearsal,
    sends_a_change_in_an_audit,
    names_two_machines_in_one_request,
    sends_without_an_intent,
    skips_the_last_look,
    ends_a_protected_machine,
    makes_a_group_relaunch,
    takes_no_time_for_old_age,
    ends_what_nobody_owns,
    hammers_one_machine,
    goes_on_after_a_throttle,
    overlooks_a_machine,
    judges_what_is_not_ours,
    reads_only_some_rows,
    tracks_without_a_live_row,
    takes_the_first_few,
    takes_a_lock_for_an_empty_registry,
    tells_other_than_the_cloud,
    counts_one_end_twice,
    takes_accepted_for_gone,
    learns_from_an_incomplete_look,
    counts_an_end_that_was_undone,
    speaks_of_a_gone_machine,
    calls_our_own_a_leak,
    forgets_when_it_first_saw,
    leaves_intents_of_a_rehearsal,
    touches_the_registry,
    names_what_is_gone,
    begins_a_counter_at_one,
    counts_what_is_not_ours,
)

_ONLY_WHERE_NAMED: tuple[Law, ...] = (
    stops_at_an_empty_page,
    reads_the_registry_first,
    unprotects_by_a_bad_time,
    stumbles_over_a_naive_time,
    gets_an_age_wrong,
    closes_the_breaker_itself,
    refuses_an_empty_registry,
    lets_one_spoil_the_rest,
    blames_the_listing,
    dies_of_a_lock,
)

LAWS: Mapping[str, Law] = {law.__name__: law for law in (*EVERYWHERE, *_ONLY_WHERE_NAMED)}
