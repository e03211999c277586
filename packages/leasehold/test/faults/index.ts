/**
 * How faults are tried against real engines: a `Crowd` of processes locks the same few keys, through
 * a `TcpProxy` where lines are to be cut, while the test kills, freezes and cuts what it likes; then
 * `faultsOf` says what is wrong with what they were told. `crowd.test.ts` is the example.
 */
export { Crowd, type CrowdSpec, type Member, type OpenStore } from './crowd.ts'
export { CHECKS, type CheckName, faultsOf, type History } from './history.ts'
export { TcpProxy } from './tcp-proxy.ts'
