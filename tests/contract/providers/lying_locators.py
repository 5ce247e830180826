"""Locators that break one promise each."""

from __future__ import annotations

from dataclasses import replace

from providers.errors import ProviderError
from providers.locations import Gone, NotKnown, There
from providers.model import InstanceState
from tests.contract.providers.liars import Alone, Through, mutate


class LocatesThrough(Through):
    def locate(self, refs):
        return {ref: self.told(found) for ref, found in self.inner.locate(refs).items()}

    def told(self, found):
        return found


class LocatesUnderAnotherName(LocatesThrough):
    name = "another"


class LocatesAndTerminates(LocatesThrough):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.harness.terminator().terminate(ref, seen=seen)


class TakesAllForGone(LocatesThrough):
    def told(self, found):
        return Gone()


class SpeaksOfOthers(LocatesThrough):
    def locate(self, refs):
        others = [instance.ref for instance in self.harness.lister().list_owned()]
        return self.inner.locate([*refs, *others])


class LooksByTheTag(LocatesThrough):
    """What no listing shows is gone: this is what a reaper without a locator has to believe."""

    def locate(self, refs):
        ours = {i.ref: i for i in self.harness.lister().list_owned() if i.owner == self.harness.owner}
        return {ref: There(ours[ref].state, ours[ref].owner) if ref in ours else Gone() for ref in refs}


class ClaimsWhatItFinds(LocatesThrough):
    def told(self, found):
        return replace(found, owner=self.harness.owner) if isinstance(found, There) else found


class TakesStoppedForGone(LocatesThrough):
    def told(self, found):
        return Gone() if found == There(InstanceState.STOPPED, self.harness.owner) else found


class NeverSaysGone(LocatesThrough):
    def told(self, found):
        return NotKnown("it is not there") if isinstance(found, Gone) else found


class SeesTheDead(LocatesThrough):
    def told(self, found):
        lives = isinstance(found, There) and found.state.exists
        return found if lives else There(InstanceState.RUNNING, self.harness.owner)


class GivesUpOnOneBadId(LocatesThrough):
    def locate(self, refs):
        found = self.inner.locate(refs)
        return dict.fromkeys(found, NotKnown("a bad id")) if Gone() in found.values() else found


class TakesSilenceForGone(LocatesThrough):
    def told(self, found):
        return Gone() if isinstance(found, NotKnown) else found


class FallsBackToAnotherPlace(LocatesThrough):
    def locate(self, refs):
        places = {scope: scope for scope in self.harness.scopes}
        here = {ref: places.get(ref.scope, self.harness.scopes[0]) for ref in refs}
        asked = {ref: replace(ref, provider=at.provider, region=at.region) for ref, at in here.items()}
        found = self.inner.locate(list(asked.values()))
        return {ref: found[asked[ref]] for ref in refs}


class RaisesWhatItDoesNotKnow(LocatesThrough):
    def told(self, found):
        if isinstance(found, NotKnown):
            raise ProviderError(found.detail)
        return found


class TagsWhatItLocates(LocatesThrough):
    def locate(self, refs):
        for ref in refs:
            mutate(self.harness, ref, "create_tags")
        return self.inner.locate(refs)


class LocatesAlone(LocatesThrough):
    def __init__(self, harness, inner):
        super().__init__(harness, inner)
        self._alone = Alone()

    def locate(self, refs):
        with self._alone:
            return self.inner.locate(refs)
