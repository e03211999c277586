/** Replaces `other-scenes.ts` in tests of recipes while mutants run: no slow stores. */
export const OTHER_SCENES = []
