/** The commands that run another command while something is held. */
export { electCommand } from './elect.ts'
export { lockCommand } from './lock.ts'
export { registerCommand } from './register.ts'
