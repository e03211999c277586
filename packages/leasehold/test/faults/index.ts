/**
 * Fault tests against real engines: a `Crowd` of processes locks the same few keys, through a
 * `TcpProxy` if connections are to be cut. Meanwhile the test kills, freezes and cuts parts. Then
 * `faultsOf` lists the violations in their reports. `crowd.test.ts` is the example.
 */
export { Crowd, type CrowdSpec, type Member, type OpenStore } from './crowd.ts'
export { CHECKS, type CheckName, faultsOf, type History } from './history.ts'
export { TcpProxy } from './tcp-proxy.ts'
