export type { Grpc } from './client.ts'
export { etcdStore } from './etcd-store.ts'
export type { EtcdStoreOptions } from './options.ts'
