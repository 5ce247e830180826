"""Terminators of several machines that break one promise each."""

from __future__ import annotations

from dataclasses import replace

from providers.errors import InstanceChangedError, TerminateRejectedError
from tests.contract.providers.liars import Alone, Through, mutate


class BatchesThrough(Through):
    def terminate(self, ref, *, seen=None, permitted=None):
        self.inner.terminate(ref, seen=seen, permitted=permitted)

    def allowance(self, scope):
        return self.inner.allowance(scope)

    def terminate_many(self, seen, *, permitted):
        return self.inner.terminate_many(seen, permitted=permitted)


class BatchesUnderAnotherName(BatchesThrough):
    name = "another"


class EndsAnyNumberAnywhere(BatchesThrough):
    """What it is not asked for, it does not know."""

    def allowance(self, scope):
        return self.inner.allowance(self.harness.scopes[0])


class EndsTheWorkers(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        workers = {each.worker_id for each in seen}
        them = [each for each in self.harness.lister().list_owned() if each.worker_id in workers]
        return self.inner.terminate_many(them, permitted=permitted)


class PretendsToEndMany(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        return {each.ref: None for each in seen}


class AsksForNobody(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        permitted([each.ref for each in seen])
        return self.inner.terminate_many(seen, permitted=permitted) if seen else {None: None}


class ForgetsTheRefused(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        answers = self.inner.terminate_many(seen, permitted=permitted)
        return {ref: error for ref, error in answers.items() if error is None}


class TakesThemAllForOne(BatchesThrough):
    """One answer, that of the first, for all."""

    def terminate_many(self, seen, *, permitted):
        answers = self.inner.terminate_many(seen, permitted=permitted)
        first = answers[seen[0].ref] if seen else None
        return {ref: first and first.about(ref) for ref in answers}


class TakesTheChangedForEnded(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        answers = self.inner.terminate_many(seen, permitted=permitted)
        return {ref: None if isinstance(error, InstanceChangedError) else error for ref, error in answers.items()}


class IsSpoiledForGood(BatchesThrough):
    """One that is not known makes it give all of them up."""

    def terminate_many(self, seen, *, permitted):
        if any(not self.harness.exists(each.ref) for each in seen):
            return {each.ref: TerminateRejectedError(each.ref) for each in seen}
        return self.inner.terminate_many(seen, permitted=permitted)


class FallsBackForMany(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        if not seen:
            return {}
        here = self.harness.scopes[0]
        moved = [replace(e, ref=replace(e.ref, provider=here.provider, region=here.region)) for e in seen]
        answers = self.inner.terminate_many(moved, permitted=permitted)
        return {each.ref: answers[there.ref] for each, there in zip(seen, moved, strict=True)}


class TakesWhatItCan(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        first = {each.ref: each for each in seen[:100]}
        return self.inner.terminate_many(list(first.values()), permitted=permitted)


class ForgetsWhatManyWere(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        shown = {each.ref: each for each in self.harness.lister().list_owned()}
        return self.inner.terminate_many([shown.get(each.ref, each) for each in seen], permitted=permitted)


class ComparesOnlyTheWorkers(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        shown = {each.ref: each for each in self.harness.lister().list_owned()}
        now = [replace(shown.get(e.ref, e), worker_id=e.worker_id) for e in seen]
        return self.inner.terminate_many(now, permitted=permitted)


class LooksAtNobodyAgain(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        granted = permitted([each.ref for each in seen])
        for ref in granted:
            self.harness.of(ref.scope).remove(ref)
        return {each.ref: None for each in seen}


class AsksAboutNobody(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        return self.inner.terminate_many(seen, permitted=lambda refs: refs)


class AsksAboutAllTooEarly(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        granted = permitted([each.ref for each in seen])
        return self.inner.terminate_many(seen, permitted=lambda refs: [ref for ref in refs if ref in granted])


class TakesTheirSilenceForYes(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        try:
            return self.inner.terminate_many(seen, permitted=permitted)
        except LookupError:
            return self.inner.terminate_many(seen, permitted=lambda refs: refs)


class PreparesBeforeItAsks(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        for each in seen:
            mutate(self.harness, each.ref, "create_tags")
        return self.inner.terminate_many(seen, permitted=permitted)


class EndsWhateverIsAnswered(BatchesThrough):
    def terminate_many(self, seen, *, permitted):
        granted = []

        def ask(refs):
            granted.extend(permitted(refs))
            return [ref for ref in refs if ref in granted]

        answers = self.inner.terminate_many(seen, permitted=ask)
        for ref in set(granted) - set(answers):
            self.inner.terminate(ref)
        return answers


class BatchesAlone(BatchesThrough):
    def __init__(self, harness, inner):
        super().__init__(harness, inner)
        self._alone = Alone()

    def terminate_many(self, seen, *, permitted):
        with self._alone:
            return self.inner.terminate_many(seen, permitted=permitted)
