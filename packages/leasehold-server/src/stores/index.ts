export { epochOf, folderOf, type OpenedStore, openStore, SECRETS_KEY } from './open-store.ts'
