export { type Listener, PrefixWatch } from './prefix-watch.ts'
export { type Changed, type Place, type Snapshot, View } from './view.ts'
