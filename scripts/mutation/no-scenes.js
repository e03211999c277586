/** What the tests of recipes import as `other-scenes.ts` while mutants run: none of the slow stores. */
export const OTHER_SCENES = []
