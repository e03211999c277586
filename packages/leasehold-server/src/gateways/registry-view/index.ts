export { type Endpoint, parseEndpoint } from './endpoint.ts'
export {
  demandReader,
  RegistryView,
  type RegistryViewOptions,
  type Service,
  type ServiceInstance,
  type ViewListener,
  visibleTo,
} from './registry-view.ts'
