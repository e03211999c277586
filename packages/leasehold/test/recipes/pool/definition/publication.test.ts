import { describe, expect, it } from 'vitest'
import { LeaseholdError } from '../../../../src/index.ts'
import { definitionJson, definitionOf } from '../../../../src/recipes/pool/definition/definition.ts'
import { Publication } from '../../../../src/recipes/pool/definition/publication.ts'

const ONE = definitionOf({ resources: [{ name: 'a' }] })
const TWO = { resources: [{ name: 'a' }, { name: 'b' }] }
const invalid = expect.objectContaining({ code: 'invalid-argument' })

/** A publication on a store with these answers, and the leases that it ended. */
function scene(granted: unknown, revoke: (lease: string) => Promise<unknown> = async () => ({})) {
  const ended: string[] = []
  const store = {
    grant: async () => granted,
    read: async () => ({ claims: [1, 2, 3].map((token) => ({ token, lease: `l${token}` })) }),
    revoke: async ({ target }: { target: { lease: string } }) => {
      ended.push(target.lease)
      return revoke(target.lease)
    },
  }
  const publication = new Publication({ store, holder: 'h' } as never, 'p', 'pool/p/definition')
  return { publication, ended }
}

const failing = (code: 'lease-not-found' | 'storage-failed') => () =>
  Promise.reject(new LeaseholdError(code, 'it failed'))

describe('the published definition', () => {
  it('is unknown while there is none, and stays known if its claim becomes unreadable', () => {
    const { publication } = scene({})
    publication.seen({ holders: () => [] } as never)
    expect(publication.known).toBeUndefined()
    publication.seen({ holders: () => [{ value: definitionJson(ONE) }] } as never)
    publication.seen({ holders: () => [] } as never)
    expect(publication.known).toEqual(ONE)
  })

  it('is refused if there is a different one', async () => {
    for (const ahead of [[], [{ first: { value: 'other' } }]]) {
      const { publication } = scene({ outcome: 'busy', ahead })
      publication.want(ONE)
      await expect(publication.ready()).rejects.toEqual(invalid)
    }
    const { publication } = scene({ outcome: 'granted' })
    publication.want(ONE)
    expect(() => publication.want(definitionOf(TWO))).toThrow(invalid)
  })

  it('is accepted if there is an equal one', async () => {
    const { publication } = scene({
      outcome: 'busy',
      ahead: [{ first: { value: definitionJson(ONE) } }],
    })
    publication.want(ONE)
    await publication.ready()
    expect(publication.known).toEqual(ONE)
  })

  it('ends older ones when it is replaced, and none after it', async () => {
    const { publication, ended } = scene({ outcome: 'granted', token: 3 })
    await publication.replace(TWO)
    expect([ended, publication.known]).toEqual([['l1', 'l2'], definitionOf(TWO)])
  })

  it('ends none if the store has not accepted it', async () => {
    const { publication, ended } = scene({ outcome: 'busy' })
    await publication.replace(TWO)
    expect(ended).toEqual([])
  })

  it('is replaced although another process has ended the old one', async () => {
    const { publication } = scene({ outcome: 'granted', token: 3 }, failing('lease-not-found'))
    await publication.replace(TWO)
    expect(publication.known).toEqual(definitionOf(TWO))
  })

  it('is not replaced if the old one cannot be ended', async () => {
    const { publication } = scene({ outcome: 'granted', token: 3 }, failing('storage-failed'))
    await expect(publication.replace(TWO)).rejects.toMatchObject({ code: 'storage-failed' })
    expect(publication.known).toBeUndefined()
  })
})
