/** The commands that show keys, holders and events without changing them. */
export { getCommand } from './get.ts'
export { historyCommand } from './history.ts'
export { lsCommand } from './ls.ts'
export { poolCommand } from './pool.ts'
export { servicesCommand } from './services.ts'
export { topCommand } from './top.ts'
export { waitersCommand } from './waiters.ts'
export { watchCommand } from './watch.ts'
