import { describe, expect, it } from 'vitest'
import { checkExposure, loadConfig } from '../../src/config/index.ts'

function adviceFor(store: string): string {
  try {
    checkExposure(loadConfig({ host: '0.0.0.0', store }, {}), false)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

describe('the advice of a server that would be open to a network', () => {
  it('is to create a token first, if that is possible without a server', () => {
    const command = `'leasehold access-token create admin --right all: --store file:./data'`
    expect(adviceFor('file:./data')).toContain(
      `create an access token first: ${command}; or use --tls-ca`,
    )
  })

  it('has no password in it', () => {
    const advice = adviceFor('postgres://me:secret@h/db')
    expect(advice).toContain('--store postgres://…@h/db')
    expect(advice).not.toContain('secret')
  })

  it('does not suggest a token for a store that ends with its process', () => {
    const advice = adviceFor('memory:')
    expect(advice).not.toContain('--store memory:')
    expect(advice).toContain("use --tls-ca, or serve 'file:<folder>'")
  })
})
