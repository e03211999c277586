import type { FastifyInstance } from 'fastify'
import type { HttpApi } from '../../http/index.ts'
import { demandReader, type RegistryView, visibleTo } from '../registry-view/index.ts'
import { targetGroupOf } from './target-group.ts'

interface TargetsQuery {
  readonly service?: string | readonly string[]
  readonly endpoint?: string | readonly string[]
}

/**
 * Serves all registered instances as targets of Prometheus, whatever their health: a monitor must
 * also see what is broken. `?service=web` selects services, and `?endpoint=metrics` the endpoint to
 * scrape instead of the address.
 */
export function servePrometheusTargets(app: FastifyInstance, api: HttpApi, view: RegistryView) {
  api.addProtocol(app, '/prometheus', (routes, admissionOf) => {
    routes.get('/targets', async (request, reply) => {
      const { principal } = admissionOf(request)
      demandReader(principal)
      const { service, endpoint } = request.query as TargetsQuery
      const wanted = service === undefined ? view.services : [...new Set([service].flat())]
      const name = [endpoint].flat()[0]
      const groups = wanted.flatMap((each) =>
        visibleTo(principal, view.service(each)?.all ?? []).flatMap(
          (instance) => targetGroupOf(instance, name) ?? [],
        ),
      )
      return reply.type('application/json').send(groups)
    })
  })
}
