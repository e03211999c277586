export { networkProbe } from './network-probe.ts'
