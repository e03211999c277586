export { Agents, type Operation, type Pair } from './agents.ts'
