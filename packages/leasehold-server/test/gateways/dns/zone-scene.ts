import { decode, encode, type Packet } from 'dns-packet'
import type { RegisterOptions } from 'leasehold'
import { Responder } from '../../../src/gateways/dns/responder.ts'
import { viewScene } from '../view-scene.ts'

type Given = Readonly<Record<string, Readonly<Record<string, RegisterOptions>>>>

/** A zone with these instances, by service and id, and a client that asks without a network. */
export async function zoneWith(services: Given) {
  const { clock, open, register } = await viewScene()
  const view = await open()
  const registered = new Map<string, Awaited<ReturnType<typeof register>>>()
  for (const [service, instances] of Object.entries(services)) {
    for (const [id, options] of Object.entries(instances)) {
      registered.set(id, await register(service, id, options))
    }
  }
  await clock.advance(10)
  const responder = new Responder(view)
  const send = (bytes: Buffer, size = 65_507, isDatagram = true) =>
    responder.answer(bytes, size, isDatagram)
  const ask = (type: string, name: string, edns?: number, isDatagram = true) => {
    const opt = { type: 'OPT', name: '.', udpPayloadSize: edns, flags: 0, options: [] }
    const packet = {
      ...{ type: 'query', id: 7, flags: 256, questions: [{ type, name }] },
      ...(edns !== undefined && { additionals: [opt] }),
    } as unknown as Packet
    const bytes = send(encode(packet), isDatagram ? 65_507 : 65_535, isDatagram)!
    return Object.assign(decode(bytes), { bytes: bytes.length })
  }
  return { clock, view, registered, register, responder, send, ask }
}

/** Many instances of `web`. */
export function many(count: number): Given {
  const instance = (_: unknown, at: number) => [
    `backend-${at}`,
    { address: `10.0.${at >> 8}.${at & 255}:8080` },
  ]
  return { web: Object.fromEntries(Array.from({ length: count }, instance)) }
}

export const WEB: Given = {
  web: {
    'i-1': { address: '10.0.0.1:80', tags: ['gpu', 'Big'], zone: 'eu-1', weight: 1 },
    'i-2': { address: '10.0.0.2:81', tags: ['gpu'], zone: 'eu-2', weight: 2 },
    'i-3': { address: '[fd00::3]:82', zone: 'eu-2', weight: 4 },
  },
}
