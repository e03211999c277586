import { describe, expect, it } from 'vitest'
import {
  addressKind,
  brakeLimits,
  type CheckedPolicy,
  checkedPolicy,
  complaintAboutAddress,
  complaintAboutTarget,
  parseAddress,
  targetOf,
} from '../../../../src/recipes/index.ts'
import { checkOf, parseCheck } from '../../../../src/recipes/registry/check/check.ts'

const refused = expect.objectContaining({ code: 'invalid-argument' })
const kind = (text: string) => addressKind(parseAddress(text)!)

describe('a range of addresses', () => {
  it.each([
    ['metadata', '169.254.169.254', '169.254.169.254', '169.254.169.253', '169.254.169.255'],
    ['metadata', '169.254.170.2', '169.254.170.2', '169.254.170.1', '169.254.170.3'],
    ['metadata', '100.100.100.200', '100.100.100.200', '100.100.100.199', '100.100.100.201'],
    ['metadata', '168.63.129.16', '168.63.129.16', '168.63.129.15', '168.63.129.17'],
    ['metadata', '192.0.0.192', '192.0.0.192', '192.0.0.191', '192.0.0.193'],
    ['metadata', 'fd00:ec2::', 'fd00:ec2:ffff::ffff', 'fd00:ec1:ffff::', 'fd00:ec3::'],
    ['metadata', 'fd20:ce::254', 'fd20:ce::254', 'fd20:ce::253', 'fd20:ce::255'],
    ['unspecified', '0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
    ['loopback', '127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
    ['link-local', '169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
    ['private', '10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
    ['private', '172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
    ['private', '192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
    ['private', '100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
    ['private', '198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
    ['reserved', '192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
    ['reserved', '192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
    ['multicast', '224.0.0.0', '239.255.255.255', '223.255.255.255', '240.0.0.0'],
    ['reserved', '240.0.0.0', '255.255.255.255', '239.255.255.255', undefined],
    ['unspecified', '::', '::', undefined, '::1'],
    ['loopback', '::1', '::1', '::', '::2'],
    ['link-local', 'fe80::', 'febf:ffff::', 'fe7f:ffff::', 'fec0::'],
    ['private', 'fec0::', 'feff:ffff::', 'febf:ffff::', 'ff00::'],
    ['private', 'fc00::', 'fdff:ffff::', 'fbff:ffff::', 'fe00::'],
    ['multicast', 'ff00::', 'ffff:ffff::', 'feff:ffff::', undefined],
    ['reserved', '2001::', '2001:0:ffff::', '2000:ffff::', '2001:1::'],
    ['reserved', '64:ff9b:1::', '64:ff9b:1:ffff::', '64:ff9b:0:ffff::', '64:ff9b:2::'],
  ])('%s: %s to %s', (expected, first, last, before, after) => {
    expect([kind(first), kind(last)]).toEqual([expected, expected])
    if (before !== undefined) expect(kind(before)).not.toBe(expected)
    if (after !== undefined) expect(kind(after)).not.toBe(expected)
  })

  it.each([
    ['::ffff:10.0.0.1', '::fffe:10.0.0.1'],
    ['::ffff:0:10.0.0.1', '::ffff:1:10.0.0.1'],
    ['64:ff9b::10.0.0.1', '64:ff9b::1:10.0.0.1'],
    ['2002:a00:1::', '2003:a00:1::'],
    ['::10.0.0.1', '::1:0:10.0.0.1'],
  ])('stands for an IPv4 address: %s, but not %s', (inside, outside) => {
    expect([kind(inside), kind(outside)]).toEqual(['private', 'public'])
  })
})

describe('a written address', () => {
  it.each([
    ['1.20.255.100', [1, 20, 255, 100]],
    ['0.0.0.0', [0, 0, 0, 0]],
    ['1:203::FF', [0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255]],
    ['1:2:3:4:5:6:7:8', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ['1:2:3:4:5:6:7::', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]],
    ['::2:3:4:5:6:7:8', [0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ['1:2:3:4:5:6:1.2.3.4', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 1, 2, 3, 4]],
  ])('is read: %s', (text, bytes) => {
    expect(parseAddress(text)).toEqual(bytes)
  })

  it.each([
    ...['256.1.1.1', '1.256.1.1', '1.1.256.1', '01.1.1.1', '1.01.1.1', '1.1.01.1', '1.1.1.01'],
    ...['1000.1.1.1', 'x1.1.1.1', '1.1.1.1x', '1.1.1', '1x1.1.1', '1.1x1.1', '1.1.1x1'],
    ...[
      'g::1',
      '1::g',
      '1::1z',
      '::1.2.3',
      '::256.1.1.1',
      '1.2.3.4::',
      '1:1.2.3.4::5',
      '::1:',
      ':1::',
      ':',
    ],
    ...['1:2:3:4:5:6:7:1.2.3.4', '1:2:3:4:5:1.2.3.4'],
  ])('is refused: %s', (text) => {
    expect(parseAddress(text)).toBeUndefined()
  })
})

describe('the target of a check', () => {
  it.each([
    ['http://a:1/', { scheme: 'http', host: 'a', port: 1, path: '/' }],
    ['https://a.b-c_D9', { scheme: 'https', host: 'a.b-c_D9', port: 443, path: '/' }],
    ['http://a', { scheme: 'http', host: 'a', port: 80, path: '/' }],
    ['tcp://[2606::1]:65535', { scheme: 'tcp', host: '2606::1', port: 65_535, path: '/' }],
    ['grpcs://host1:5/a~!', { scheme: 'grpcs', host: 'host1', port: 5, path: '/a~!' }],
    ['http://1a.2b./x', { scheme: 'http', host: '1a.2b.', port: 80, path: '/x' }],
    [`http://${'a'.repeat(253)}/`, { host: 'a'.repeat(253) }],
  ])('is read: %s', (url, target) => {
    expect(targetOf('check', url)).toMatchObject(target)
  })

  it.each([
    ...['xhttp://a/', 'HTTP://a/', ' http://a/', 'http://a/ ', 'http://a/ü', 'http:/a', 'http://'],
    ...[
      'http://a:/',
      'http://a:123456/',
      'http://a:0/',
      'http://a:65536/',
      'http://a?b',
      'ftp://a',
    ],
    ...['http://[::1/', 'http://::1]/', 'http://[1:2]/', 'http://[g::]/', 'http://a.12/'],
    ...['http://0x7F/', 'http://a.0XaF/', 'http://a.0x./', 'http://12./', 'http://240.0.0.1/'],
    ...['grpc://a/b', 'tcp://a', 'http://224.0.0.1/', 'http://0.0.0.0/', 'http://[fe80::1]/'],
    `http://${'a'.repeat(254)}/`,
  ])('is refused: %s', (url) => {
    expect(() => targetOf('check', url)).toThrowError(refused)
  })
})

describe('the check policy', () => {
  const complaint = (address: string, policy: CheckedPolicy) =>
    complaintAboutAddress(address, policy, { port: 80, ownAddresses: [] })
  const to = (port: number, scheme = 'tcp') => targetOf('check', `${scheme}://a:${port}`)
  const allows = (port: number, policy: Parameters<typeof checkedPolicy>[0]) =>
    complaintAboutTarget(to(port), checkedPolicy(policy)) === undefined

  it('has defaults', () => {
    expect(checkedPolicy()).toMatchObject({
      loopback: false,
      private: true,
      schemes: ['http', 'https', 'tcp', 'grpc', 'grpcs'],
      ports: [
        [80, 80],
        [443, 443],
        [1024, 65_535],
      ],
    })
  })

  it('lists single ports or inclusive ranges', () => {
    const ports = [22, [8000, 8010]] as const
    const all = [21, 22, 23, 7999, 8000, 8010, 8011]
    expect(all.filter((port) => allows(port, { ports }))).toEqual([22, 8000, 8010])
  })

  it('denies everything that is not explicitly true', () => {
    const loose = { loopback: 'yes', private: 'yes' } as never
    expect(checkedPolicy(loose)).toMatchObject({ loopback: false, private: false })
    expect(complaint('::1', checkedPolicy({}))).toMatch(/loopback/)
    expect(complaint('fd12::1', checkedPolicy({ private: false }))).toMatch(/private/)
    expect(complaint('8.8.8.8', checkedPolicy({ private: false }))).toBeUndefined()
    expect(complaint('a.example', checkedPolicy({}))).toMatch(/not an IP address/)
  })

  it.each([
    [5, /^allow /],
    [{ ports: [65_536] }, /^a port in allow\.ports /],
    [{ ports: [[1, 0]] }, /^a port in allow\.ports /],
    [{ schemes: ['file'] }, /^an entry of allow\.schemes /],
  ])('are refused: %j', (policy, message) => {
    expect(() => checkedPolicy(policy as never)).toThrowError(message)
  })
})

describe('a check', () => {
  const usual = {
    ...{ every: 10_000, timeout: 2000, down: 3, up: 2 },
    ...{ onCritical: 'leave', initially: 'passing' },
  }

  it('has defaults', () => {
    expect(checkOf({ tcp: true }, 'a:1')).toEqual({ url: 'tcp://a:1', ...usual })
    expect(checkOf({ ttl: '30s' }, undefined)).toEqual({ ttl: 30_000, ...usual })
    // A timeout is at most the interval.
    expect(checkOf({ tcp: true, every: '1s' }, 'a:1')).toMatchObject({ every: 1000, timeout: 1000 })
    const all = {
      ...{ every: 20_000, timeout: 20_000, down: 100, up: 100 },
      ...{ onCritical: 'revoke' as const, initially: 'warning' as const },
    }
    expect(checkOf({ http: 'http://a/', ...all }, undefined)).toEqual({ url: 'http://a/', ...all })
    expect(parseCheck({ url: 'http://a/', ...all })).toEqual({ url: 'http://a/', ...all })
    expect(parseCheck({ ttl: 10 })).toEqual({ ttl: 10, ...usual })
  })

  it.each([
    [{ http: '/h' }, 'a:1', 'http://a:1/h'],
    [{ http: 'h' }, 'a', 'http://a/h'],
    [{ http: '/h' }, 'http://a', 'http://a:80/h'],
    [{ http: '/h' }, 'http://a:8080/below', 'http://a:8080/h'],
    [{ http: '/h' }, 'https://a', 'https://a:443/h'],
    [{ http: '/h' }, 'grpcs://a:1', 'https://a:1/h'],
    [{ http: 'https://b/h' }, 'a', 'https://b/h'],
    [{ tcp: true }, 'https://a:1', 'tcp://a:1'],
    [{ tcp: true }, 'http://a', 'tcp://a:80'],
    [{ tcp: true }, 'http://[2606::1]', 'tcp://[2606::1]:80'],
    [{ http: '/h?u=http://b' }, 'a:1', 'http://a:1/h?u=http://b'],
    [{ tcp: 'tcp://b:2' }, 'a', 'tcp://b:2'],
    [{ tcp: 'b:2' }, 'a:1', 'tcp://b:2'],
    [{ tcp: '[::1]:2' }, undefined, 'tcp://[::1]:2'],
    [{ grpc: true }, 'https://a', 'grpcs://a:443'],
    [{ grpc: true }, 'xhttps://a:1', 'grpc://a:1'],
    [{ grpc: true }, 'httpsx://a:1', 'grpc://a:1'],
    [{ grpc: 'my.Service' }, 'a:1', 'grpc://a:1/my.Service'],
    [{ grpc: 'grpcs://b:2/s' }, 'a:1', 'grpcs://b:2/s'],
  ])('%j of an instance at %s goes to %s', (spec, address, url) => {
    expect(checkOf(spec as never, address).url).toBe(url)
  })

  it.each([
    [5, /^check /],
    [{}, /^check names none of them/],
    [{ http: '/', grpc: true }, /^check names http and grpc/],
    [{ http: true }, /^check\.http /],
    [{ http: `/${'x'.repeat(1024)}` }, /^check\.http /],
    [{ http: 'tcp://a:1' }, /^check\.http .* http:\/\//],
    [{ tcp: 'tcps://a:1' }, /^check\.tcp .* tcp:\/\//],
    [{ tcp: 'b' }, /tcp:\/\/b.*: give it a port/],
    [
      { http: 'b:80/h' },
      /^check\.http is "b:80\/h", which is neither a path nor a URL: write http:\/\/b/,
    ],
    [{ http: '10.0.0.1/h' }, /neither a path nor a URL: write http:\/\/10\.0\.0\.1\/h/],
    [{ grpc: 'b:2' }, /^check\.grpc .* write grpc:\/\/b:2/],
    [{ grpc: 'http://a:1' }, /^check\.grpc .* grpc:\/\//],
    [{ tcp: true, every: '9ms' }, /^check\.every /],
    [{ tcp: true, every: '25h' }, /^check\.every /],
    [{ tcp: true, timeout: 0.5 }, /^check\.timeout /],
    [{ tcp: true, every: '1h', timeout: '61s' }, /^check\.timeout /],
    [{ tcp: true, every: '1s', timeout: 1001 }, /^check\.timeout /],
    [{ tcp: true, down: 0 }, /^check\.down /],
    [{ tcp: true, down: 101 }, /^check\.down /],
    [{ tcp: true, up: 0 }, /^check\.up /],
    [{ tcp: true, up: 1.5 }, /^check\.up /],
    [{ tcp: true, onCritical: 'shout' }, /^check\.onCritical /],
    [{ tcp: true, initially: 'fine' }, /^check\.initially /],
    [{ ttl: '9ms' }, /^check\.ttl /],
    [{ ttl: '8d' }, /^check\.ttl /],
  ])('is refused: %j', (spec, message) => {
    expect(() => checkOf(spec as never, 'a:1')).toThrowError(message)
  })

  it.each([
    [null, /^check /],
    [{ url: 5 }, /^check /],
    [{ url: 'http://a.12/' }, /^check /],
    [{ url: `http://a/${'x'.repeat(1024)}` }, /^check /],
    [{}, /^check\.ttl /],
  ])('is refused, if somebody else has written it: %j', (value, message) => {
    expect(() => parseCheck(value)).toThrowError(message)
  })
})

describe('the limits of a brake', () => {
  it('have defaults, and never brake with false', () => {
    const usual = { share: 0.15, least: 3, window: 60_000, hold: 120_000 }
    expect(brakeLimits()).toEqual(usual)
    const all = { share: 1, least: 1_000_000, window: 10, hold: 86_400_000 }
    expect(brakeLimits(all)).toEqual(all)
    expect(brakeLimits(false)).toEqual({ share: 1, least: Infinity, window: 0, hold: 0 })
  })

  it.each([
    [true, /^brake /],
    [{ share: -0.1 }, /^brake\.share /],
    [{ least: 0 }, /^brake\.least /],
    [{ least: 1_000_001 }, /^brake\.least /],
    [{ window: '9ms' }, /^brake\.window /],
    [{ window: '25h' }, /^brake\.window /],
    [{ hold: '9ms' }, /^brake\.hold /],
    [{ hold: '25h' }, /^brake\.hold /],
  ])('are refused: %j', (limits, message) => {
    expect(() => brakeLimits(limits as never)).toThrowError(message)
  })
})
