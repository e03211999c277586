export { type Script, scriptFor, scriptOf } from './script.ts'
