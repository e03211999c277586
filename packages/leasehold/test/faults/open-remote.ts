import { remoteStore } from '../../src/stores/remote/index.ts'
import type { OpenStore } from './crowd.ts'

export const openStore: OpenStore = (url) => remoteStore(url)
