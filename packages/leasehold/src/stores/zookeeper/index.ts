export type { Auth, Connect, Server, Socket } from './client.ts'
export type { ZookeeperStoreOptions } from './options.ts'
export { zookeeperStore } from './zookeeper-store.ts'
