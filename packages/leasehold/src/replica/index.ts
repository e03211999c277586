export { type ReplicaStoreOptions, replicaStore } from './replica-store.ts'
