export { networkProbe, networkRefusal } from './network-probe.ts'
