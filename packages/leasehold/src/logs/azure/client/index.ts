export { Container, type ContainerOptions, type Request } from './container.ts'
export { FAULTS } from './faults.ts'
