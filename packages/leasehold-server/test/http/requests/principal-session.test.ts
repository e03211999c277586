import { memoryStore } from 'leasehold/memory'
import { systemRandom } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { createServerActions } from '../../../src/access/guard/server-actions.ts'
import { everybody } from '../../../src/access/identity/principal.ts'
import type { Admission } from '../../../src/access/index.ts'
import { DEFAULT_HTTP } from '../../../src/http/options.ts'
import { PrincipalSession } from '../../../src/http/requests/principal-session.ts'
import { changedStore } from '../../setup/changed-store.ts'

/** A principal session, and the releases in its name. */
async function scene() {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const released: string[] = []
  const by = (name: string) =>
    changedStore(inner, {
      release: (request) => {
        released.push(name)
        return inner.release(request)
      },
    })
  const principal = everybody()
  const admission = {
    ...{
      principal,
      store: by('the principal'),
      serverActions: createServerActions(by('the server')),
    },
    leave: () => {},
  } as unknown as Admission
  const session = await PrincipalSession.open(admission, {
    clock,
    random: systemRandom,
    options: DEFAULT_HTTP,
  })
  return { inner, session, principal, released }
}

describe('a release in the name of a principal', () => {
  it('uses its own rights while it has any, and then those of the server', async () => {
    const { inner, session, principal, released } = await scene()
    for (const name of ['the principal', 'the server']) {
      const lock = await session.leasehold.lock('k')
      await lock.release()
      expect([released, (await inner.read({ key: 'k' })).count]).toEqual([[name], 0])
      released.length = 0
      principal.ended = 'its access token was revoked'
    }
  })
})
