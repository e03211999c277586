export { EtcdClient, type EtcdClientOptions, type KeyValue, type Watch } from './etcd-client.ts'
export * from './operations.ts'
