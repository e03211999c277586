import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'
import { Probe } from './probe.ts'

/** Two real servers: an open one, and one that requires an access token. */
const probe = new Probe()
const open = await createServer({ store: memoryStore(), port: 0 })
const guarded = await createServer({ store: memoryStore(), port: 0 })
const { tokens } = guarded.access
const all = ['claim', 'renew', 'release', 'read', 'watch', 'admin'] as const
const created = {
  powerless: await tokens.create({
    name: 'powerless',
    rights: [{ verbs: ['read'], prefix: 'nothing/' }],
  }),
  // Has only some of the rights that a recipe needs: a request that waits for the rest waits
  // forever.
  partial: await tokens.create({
    name: 'partial',
    rights: [
      { verbs: ['claim', 'renew', 'release', 'read', 'admin'], prefix: 'pool/' },
      { verbs: ['claim', 'renew', 'release', 'watch', 'admin'], prefix: 'services/' },
      { verbs: ['claim', 'watch', 'admin'], prefix: 'session/' },
      { verbs: ['read', 'watch'], prefix: 'fuzz/' },
    ],
  }),
  normal: await tokens.create({
    name: 'normal',
    rights: [{ verbs: ['claim', 'read', 'watch', 'renew', 'release'], prefix: 'fuzz/' }],
    quota: { leases: 500 },
  }),
  admin: await tokens.create({ name: 'admin', rights: [{ verbs: all, prefix: 'fuzz/' }] }),
  bystander: await tokens.create({
    name: 'bystander',
    rights: [{ verbs: ['claim', 'read', 'watch'], prefix: 'bystander/' }],
  }),
}
process.on('message', () => probe.report())
process.on('disconnect', () => process.exit())
const description = await (await fetch(new URL('/openapi.json', open.url))).json()
probe.ready({ open: open.url, guarded: guarded.url, tokens: created, description })
