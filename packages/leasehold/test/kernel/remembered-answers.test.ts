import { describe, expect, it } from 'vitest'
import { RememberedAnswers } from '../../src/kernel/history/index.ts'
import type { Answer } from '../../src/kernel/index.ts'

const first = { key: 'k', lease: '0.1', holder: 'h', token: 3, mode: 'exclusive' } as never
const ahead = [{ key: 'k', count: 1, first }]
const ANSWERS: Readonly<Record<string, Answer>> = {
  held: { outcome: 'claimed', revision: 7, token: 7, holds: true, ahead: [] },
  waits: { outcome: 'claimed', revision: 8, token: 8, holds: false, ahead },
  otherToken: { outcome: 'claimed', revision: 9, token: 3, holds: true, ahead: [] },
  granted: { outcome: 'granted', lease: '0.1', revision: 1, token: 1, holds: true, ahead: [] },
  busy: { outcome: 'busy', revision: 2, ahead },
  changed: { revision: 12 },
  refused: { outcome: 'refused', refusal: { code: 'lease-not-found', message: 'no' } },
}

describe('remembered answers', () => {
  it('are as they were given, one by one and all together, also in a copy', () => {
    const answers = new RememberedAnswers(100)
    for (const [request, answer] of Object.entries(ANSWERS)) answers.set(request, answer)
    const copy = new RememberedAnswers(100)
    copy.copy(answers)
    for (const [request, answer] of Object.entries(ANSWERS)) {
      expect(answers.get(request)).toEqual(answer)
    }
    expect(answers.get('unknown')).toBeUndefined()
    expect([...answers.entries()]).toEqual(Object.entries(ANSWERS))
    expect([...copy.entries()]).toEqual(Object.entries(ANSWERS))
  })
})
