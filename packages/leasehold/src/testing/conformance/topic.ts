import type { Scene } from './scene.ts'

/** Cases by name; each is given a scene of its own. */
export type Topic = Readonly<Record<string, (scene: Scene) => Promise<void>>>
