export { azureLog, azureStore } from './azure-log.ts'
export type { AzureLogOptions } from './options.ts'
