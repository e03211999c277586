import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from 'leasehold/file'
import { memoryStore } from 'leasehold/memory'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { createServer } from '../../../src/index.ts'
import { kubernetesScene, LEASES, lease, requestsTo } from './kubernetes-scene.ts'

const { call, create, get, put, patch, remove, watch, store } = await kubernetesScene()

describe('a Lease', () => {
  it('lets one of many writers of a version win, and answers the others with 409', async () => {
    const created = await create(lease('raced', { holderIdentity: 'nobody' }))
    const writers = Array.from({ length: 20 }, (_, at) => `writer-${at}`)
    const answers = await Promise.all(
      writers.map((holderIdentity) => put({ ...created, spec: { holderIdentity } })),
    )
    const winner = answers.findIndex(({ status }) => status === 200)
    const refused = answers.filter(
      ({ status, body }) => status === 409 && body.reason === 'Conflict',
    )
    expect(refused).toHaveLength(19)
    const now = await get('raced')
    expect(now.spec).toEqual({ holderIdentity: `writer-${winner}` })
    expect(now.metadata.resourceVersion).toBe(answers[winner]!.body.metadata.resourceVersion)
    expect(Number(now.metadata.resourceVersion)).toBeGreaterThan(
      Number(created.metadata.resourceVersion),
    )
    expect(now.metadata).toMatchObject({
      uid: created.metadata.uid,
      creationTimestamp: created.metadata.creationTimestamp,
    })
  })

  it('keeps all of many patches without a resourceVersion, and refuses one with an old one', async () => {
    const { metadata } = await create(lease('patched'))
    const names = Array.from({ length: 10 }, (_, at) => `a${at}`)
    const answers = await Promise.all(
      names.map((name) =>
        patch('patched', 'merge-patch', { metadata: { annotations: { [name]: 'x' } } }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 200))
    expect(Object.keys((await get('patched')).metadata.annotations).sort()).toEqual(names)
    const late = { metadata: { resourceVersion: metadata.resourceVersion, labels: { late: '1' } } }
    expect((await patch('patched', 'merge-patch', late)).status).toBe(409)
  })

  it('is created once, also by an update, and not changed without a resourceVersion', async () => {
    const made = await Promise.all([1, 2, 3].map(() => call('POST', LEASES, lease('once'))))
    expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    expect(made.find(({ status }) => status === 409)!.body.reason).toBe('AlreadyExists')
    expect((await put(lease('by-update'))).status).toBe(201)
    const blind = await put(lease('once', { holderIdentity: 'x' }))
    expect([blind.status, blind.body.details.causes[0].field]).toEqual([
      422,
      'metadata.resourceVersion',
    ])
  })

  it('keeps its version if a write changes nothing, and on a dry run', async () => {
    const { metadata } = await create(lease('same', { leaseDurationSeconds: 15 }))
    const again = await put(lease('same', { leaseDurationSeconds: 15 }, metadata))
    expect(again.body.metadata).toEqual(metadata)
    const path = `${LEASES}/same?dryRun=All`
    const dry = await call('PUT', path, lease('same', { leaseDurationSeconds: 16 }, metadata))
    expect(dry.body.spec.leaseDurationSeconds).toBe(16)
    expect((await call('DELETE', path)).status).toBe(200)
    expect(await get('same')).toMatchObject({ metadata, spec: { leaseDurationSeconds: 15 } })
  })

  it('is deleted only in the wanted version, and then gone', async () => {
    const { metadata } = await create(lease('deleted'))
    const { resourceVersion: version, uid } = metadata
    const before = (await store.read({ leases: true })).leases.length
    expect((await remove('deleted', { preconditions: { uid: 'another' } })).status).toBe(409)
    expect((await remove('deleted', { preconditions: { resourceVersion: '1' } })).status).toBe(409)
    const { body } = await remove('deleted', { preconditions: { uid, resourceVersion: version } })
    expect(body).toMatchObject({ status: 'Success', details: { uid } })
    expect((await remove('deleted')).status).toBe(404)
    expect((await put(lease('deleted', {}, metadata))).status).toBe(409)
    expect((await store.read({ leases: true })).leases.length).toBe(before - 1)
    expect((await create(lease('deleted'))).metadata.uid).not.toBe(uid)
  })

  it('takes strategic merge patches and JSON patches, all of one or nothing', async () => {
    const owner = (uid: string) => ({ apiVersion: 'v1', kind: 'Node', name: uid, uid })
    const spec = { holderIdentity: 'a', leaseTransitions: 1 }
    await create(lease('forms', spec, { ownerReferences: [owner('1'), owner('2')] }))
    const strategic = await patch('forms', 'strategic-merge-patch', {
      metadata: { ownerReferences: [{ $patch: 'delete', uid: '1' }, owner('3')] },
      spec: { holderIdentity: null },
    })
    const { metadata, spec: after } = strategic.body
    expect(metadata.ownerReferences.map(({ uid }: { uid: string }) => uid)).toEqual(['2', '3'])
    expect(after).toEqual({ leaseTransitions: 1 })
    const done = await patch('forms', 'json-patch', [
      { op: 'test', path: '/spec/leaseTransitions', value: 1 },
      { op: 'add', path: '/metadata/annotations', value: { 'a/b': 'x' } },
      { op: 'copy', from: '/metadata/annotations/a~1b', path: '/spec/holderIdentity' },
      { op: 'remove', path: '/metadata/ownerReferences/0' },
    ])
    expect(done.body.spec).toEqual({ holderIdentity: 'x', leaseTransitions: 1 })
    expect(done.body.metadata.ownerReferences).toEqual([owner('3')])
    const refused = await patch('forms', 'json-patch', [
      { op: 'replace', path: '/spec/holderIdentity', value: 'y' },
      { op: 'test', path: '/spec/leaseTransitions', value: 2 },
    ])
    expect([refused.status, await get('forms')]).toEqual([422, done.body])
  })

  it('warns of unknown fields, or refuses them if asked to', async () => {
    const body = lease('typo', { holderIdentityy: 'x' })
    const strict = await call('POST', `${LEASES}?fieldValidation=Strict`, body)
    expect([strict.status, strict.body.message]).toEqual([
      400,
      expect.stringContaining('Identityy'),
    ])
    const warned = await call('POST', LEASES, body)
    expect(warned.headers.get('warning')).toBe(`299 - "unknown field 'spec.holderIdentityy'"`)
    expect(warned.body.spec).toEqual({})
  })

  it('survives a restart, and its resourceVersion goes on', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-kubernetes-'))
    const versions: number[] = []
    for (const holderIdentity of ['one', 'two', 'three']) {
      const durable = await fileStore(folder)
      const server = await createServer({ store: durable, port: 0, gateways: { kubernetes: true } })
      const to = requestsTo(`${server.url}/kubernetes`)
      const before = versions.length === 0 ? lease('kept') : await to.get('kept')
      if (versions.length > 0) expect(Number(before.metadata.resourceVersion)).toBe(versions.at(-1))
      const { body } = await to.put({ ...before, spec: { holderIdentity } })
      versions.push(Number(body.metadata.resourceVersion))
      await server.close()
      await durable.close()
    }
    rmSync(folder, { recursive: true })
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
  })
})

describe('a list', () => {
  it('comes in pages, and a watch from it reports what changed meanwhile', async () => {
    for (const name of ['p1', 'p2', 'p3'])
      await create(lease(name, {}, { labels: { in: 'pages' } }))
    const page = async (more: string) =>
      (await call('GET', `${LEASES}?labelSelector=in%3Dpages&limit=1${more}`)).body
    const seen: string[] = []
    let next = ''
    let version: string | undefined
    do {
      const { items, metadata } = await page(next)
      version ??= metadata.resourceVersion
      expect(metadata.resourceVersion).toBe(version)
      for (const item of items) {
        seen.push(item.metadata.name)
        await patch(item.metadata.name, 'merge-patch', { spec: { holderIdentity: 'listed' } })
      }
      next = metadata.continue && `&continue=${metadata.continue}`
    } while (next)
    expect(seen).toEqual(['p1', 'p2', 'p3'])
    const events = await watch(`resourceVersion=${version}&labelSelector=in%3Dpages`)
    for (const name of seen) {
      expect(await events.next()).toMatchObject({
        type: 'MODIFIED',
        object: { metadata: { name } },
      })
    }
    events.close()
  })
})

describe('a watch', () => {
  const summary = ({ type, object }: { type: string; object: { metadata: object } }) => [
    type,
    (object.metadata as { name: string }).name,
    Number((object.metadata as { resourceVersion: string }).resourceVersion),
  ]

  it('reports each change once, in order, and resumes after any of them', async () => {
    const { metadata } = (await call('GET', LEASES)).body
    const events = await watch(`resourceVersion=${metadata.resourceVersion}`)
    const made = await create(lease('seen'))
    const changed = (await put({ ...made, spec: { holderIdentity: 'x' } })).body
    await remove('seen')
    const all = [await events.next(), await events.next(), await events.next()].map((event) =>
      summary(event!),
    )
    const version = (object: { metadata: { resourceVersion: string } }) =>
      Number(object.metadata.resourceVersion)
    expect(all.slice(0, 2)).toEqual([
      ['ADDED', 'seen', version(made)],
      ['MODIFIED', 'seen', version(changed)],
    ])
    expect(all[2]).toEqual(['DELETED', 'seen', expect.any(Number)])
    expect(all[2]![2]).toBeGreaterThan(version(changed))
    const resumed = await watch(`resourceVersion=${version(made)}`)
    expect(summary((await resumed.next())!)).toEqual(all[1])
    expect(summary((await resumed.next())!)).toEqual(all[2])
    resumed.close()
    events.close()
  })

  it('begins with the objects, and says when they are complete', async () => {
    await create(lease('first'))
    const events = await watch(
      'fieldSelector=metadata.name%3Dfirst&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
    )
    expect(summary((await events.next())!).slice(0, 2)).toEqual(['ADDED', 'first'])
    const { type, object } = (await events.next())!
    expect([type, object.metadata.annotations]).toEqual([
      'BOOKMARK',
      { 'k8s.io/initial-events-end': 'true' },
    ])
    events.close()
  })

  it('reports an object that is no longer selected, or was removed by force, as deleted', async () => {
    const labels = { team: 'a' }
    const { metadata } = await create(lease('leaving', {}, { labels }))
    const events = await watch(`resourceVersion=${metadata.resourceVersion}&labelSelector=team%3Da`)
    await patch('leaving', 'merge-patch', { metadata: { labels: { team: 'b' } } })
    expect(summary((await events.next())!).slice(0, 2)).toEqual(['DELETED', 'leaving'])
    await patch('leaving', 'merge-patch', { metadata: { labels } })
    expect(summary((await events.next())!).slice(0, 2)).toEqual(['ADDED', 'leaving'])
    await store.revoke({ target: { prefix: 'kubernetes/leases/default/leaving' }, why: 'test' })
    expect(summary((await events.next())!).slice(0, 2)).toEqual(['DELETED', 'leaving'])
    events.close()
  })

  it('from a version that is not kept any more ends with 410', async () => {
    const short = memoryStore({ limits: { events: 1 } })
    const server = await createServer({ store: short, port: 0, gateways: { kubernetes: true } })
    const to = requestsTo(`${server.url}/kubernetes`)
    const { metadata } = await to.create(lease('old'))
    for (let at = 0; at < 100; at++)
      await short.grant({ holder: 'x', ttl: 1000, claims: [{ key: `${at}` }] })
    const events = await to.watch(`resourceVersion=${metadata.resourceVersion}`)
    expect(await events.next()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired' },
    })
    expect(await events.next()).toBe(undefined)
    await server.close()
    await short.close()
  })

  it('sends bookmarks, and ends when its time is over', async () => {
    const clock = new TestClock()
    const timed = memoryStore({ clock })
    const server = await createServer({
      store: timed,
      clock,
      port: 0,
      gateways: { kubernetes: true },
    })
    const to = requestsTo(`${server.url}/kubernetes`)
    const made = await to.create(lease('made'))
    const version = made.metadata.resourceVersion
    const events = await to.watch(
      `resourceVersion=${version}&allowWatchBookmarks=1&timeoutSeconds=100&fieldSelector=metadata.name%3Dmade`,
    )
    const { body } = await to.put({ ...made, spec: { holderIdentity: 'x' } })
    expect((await events.next())!.type).toBe('MODIFIED')
    await clock.advance(60_000)
    expect(await events.next()).toMatchObject({
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: body.metadata.resourceVersion } },
    })
    await clock.advance(60_000)
    expect(await events.next()).toBe(undefined)
    await server.close()
    await timed.close()
  })
})

describe('malformed and hostile requests', () => {
  const deep = `${'{"spec":'.repeat(5000)}1${'}'.repeat(5000)}`
  const cases: [string, number, Parameters<typeof call>][] = [
    ['a body that is no JSON', 400, ['POST', LEASES, '{']],
    ['a body that is no object', 400, ['POST', LEASES, '[1]']],
    ['another kind', 400, ['POST', LEASES, { kind: 'Pod', metadata: { name: 'x' } }]],
    ['a large body', 413, ['POST', LEASES, lease('x', { holderIdentity: 'x'.repeat(300_000) })]],
    ['a large object', 413, ['POST', LEASES, lease('x', { holderIdentity: 'x'.repeat(70_000) })]],
    ['no name', 422, ['POST', LEASES, { metadata: {} }]],
    ['a name with a slash', 422, ['POST', LEASES, lease('a/b')]],
    ['a long name in the path', 422, ['GET', `${LEASES}/${'x'.repeat(3000)}`]],
    ['a wrong namespace', 400, ['GET', LEASES.replace('default', '..%2Fx')]],
    ['another namespace in the body', 400, ['POST', LEASES, lease('x', {}, { namespace: 'y' })]],
    ['a wrong time', 422, ['POST', LEASES, lease('x', { renewTime: 'yesterday' })]],
    ['a wrong number', 422, ['POST', LEASES, lease('x', { leaseDurationSeconds: 0 })]],
    ['a finalizer', 422, ['POST', LEASES, lease('x', {}, { finalizers: ['x'] })]],
    ['a wrong label', 422, ['POST', LEASES, lease('x', {}, { labels: { 'a b': 'c' } })]],
    ['a poisoned prototype', 400, ['POST', LEASES, '{"__proto__":{"x":1}}']],
    ['a wrong limit', 400, ['GET', `${LEASES}?limit=-1`]],
    ['a parameter twice', 400, ['GET', `${LEASES}?limit=1&limit=2`]],
    ['a wrong continuation', 410, ['GET', `${LEASES}?continue=%00`]],
    ['a continuation elsewhere', 410, ['GET', `${LEASES}?continue=${elsewhere()}`]],
    ['a wrong version', 400, ['GET', `${LEASES}?watch=1&resourceVersion=x`]],
    ['a wrong selector', 400, ['GET', `${LEASES}?labelSelector=a%20b`]],
    ['many conditions', 400, ['GET', `${LEASES}?labelSelector=${'a%2C'.repeat(101)}`]],
    ['an unknown field', 400, ['GET', `${LEASES}?fieldSelector=spec.holderIdentity%3Dx`]],
    ['a deep patch', 400, ['PATCH', `${LEASES}/target`, deep, merge()]],
    ['a patch without a type', 415, ['PATCH', `${LEASES}/target`, {}]],
    ['server-side apply', 415, ['PATCH', `${LEASES}/target`, '{}', merge('apply-patch+yaml')]],
    [
      'a patch of everything',
      400,
      ['PATCH', `${LEASES}/target`, whole(), merge('json-patch+json')],
    ],
    ['a patch of the name', 400, ['PATCH', `${LEASES}/target`, lease('other'), merge()]],
    ['a list of all patches', 400, ['PATCH', `${LEASES}/target`, many(), merge('json-patch+json')]],
    ['another resource', 404, ['GET', '/api/v1/namespaces/default/pods']],
    ['another method', 404, ['DELETE', LEASES]],
  ]

  it.each(cases)('%s: %i and a bounded status', async (_name, status, request) => {
    const target = await call('GET', `${LEASES}/target`)
    const before = target.status === 200 ? target.body : await create(lease('target'))
    const answer = await call(...request)
    expect(answer.body).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure' })
    expect([answer.status, answer.body.code]).toEqual([status, status])
    expect(answer.body.message.length).toBeGreaterThan(10)
    expect(JSON.stringify(answer.body).length).toBeLessThan(3000)
    expect(await get('target')).toEqual(before)
  })

  function merge(type = 'merge-patch+json') {
    return { 'content-type': `application/${type}` }
  }
  function elsewhere() {
    return Buffer.from(JSON.stringify({ revision: 1, after: 'jobs/x' })).toString('base64url')
  }
  function whole() {
    return [{ op: 'replace', path: '', value: {} }]
  }
  function many() {
    return Array.from({ length: 1001 }, () => ({ op: 'test', path: '/kind', value: 'Lease' }))
  }
})
