import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import type { OpenStore } from '../../faults/index.ts'

export const openStore: OpenStore = (servers) => zookeeperStore({ servers, root: '/faults' })
