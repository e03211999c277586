import { describe, expect, it } from 'vitest'
import { kubernetesScene, LEASES, lease } from './kubernetes-scene.ts'

const { call, watch, createToken, server } = await kubernetesScene()
const OF_DEFAULT = 'kubernetes/leases/default/'

describe('access rights', async () => {
  const as = (token: string) => ({ authorization: `Bearer ${token}` })
  await createToken('root', 'all:')
  const reader = as(await createToken('reader', `read,watch:${OF_DEFAULT}`))
  const candidate = as(await createToken('candidate', `claim,renew,read:${OF_DEFAULT}reports`))
  const cleaner = as(await createToken('cleaner', `read,release:${OF_DEFAULT}`))

  it('are those of the keys: read, watch, claim, renew and release', async () => {
    const status = async (...request: Parameters<typeof call>) => (await call(...request)).status
    const item = `${LEASES}/reports`
    expect(await status('GET', LEASES)).toBe(401)
    expect(await status('GET', '/apis')).toBe(401)
    expect(await status('POST', LEASES, lease('reports'), reader)).toBe(403)
    expect(await status('POST', LEASES, lease('other'), candidate)).toBe(403)
    const made = await call('POST', LEASES, lease('reports'), candidate)
    expect(made.status).toBe(201)
    const changed = { ...made.body, spec: { holderIdentity: 'x' } }
    expect(await status('PUT', item, changed, reader)).toBe(403)
    expect(await status('PUT', item, changed, candidate)).toBe(200)
    expect(await status('GET', item, undefined, reader)).toBe(200)
    expect(await status('GET', LEASES, undefined, reader)).toBe(200)
    expect(await status('GET', LEASES, undefined, candidate)).toBe(403)
    const own = `${LEASES}?fieldSelector=metadata.name%3Dreports`
    expect(await status('GET', own, undefined, candidate)).toBe(200)
    expect(await status('GET', LEASES.replace('default', 'other'), undefined, reader)).toBe(403)
    const all = '/apis/coordination.k8s.io/v1/leases'
    expect(await status('GET', all, undefined, reader)).toBe(403)
    const refused = await call('GET', `${LEASES}?watch=1`, undefined, cleaner)
    expect([refused.status, refused.body.reason]).toEqual([403, 'Forbidden'])
    expect(await status('DELETE', item, undefined, candidate)).toBe(403)
    expect(await status('DELETE', item, undefined, cleaner)).toBe(200)
  })

  it('end a watch when the access token is revoked', async () => {
    const events = await watch('', reader)
    await server.access.tokens.revoke('reader', 'test')
    expect(await events.next()).toMatchObject({ type: 'ERROR', object: { code: 401 } })
    expect(await events.next()).toBe(undefined)
  })
})
