import type { Client, View } from '../../../client/index.ts'
import type { Event, Key, LeaseId, Timer, Token } from '../../../port/index.ts'
import { Brake, type BrakeLimits } from '../brake.ts'
import type { Check, CheckStatus } from '../check/check.ts'
import { targetOf } from '../check/check-policy.ts'
import { parseDescription } from '../instance/description.ts'
import { healthJson, healthKey, newestHealth, partsOfKey, SERVICES } from '../instance/instance.ts'
import { type CheckState, nextState } from './check-state.ts'
import { HealthResults } from './health-results.ts'
import type { Probe, ProbeResult } from './probe.ts'

export interface CheckScheduleOptions {
  /** Default: all services. */
  readonly service: string | undefined
  readonly probe: Probe
  readonly concurrency: number
  /** The shortest interval between checks of an instance, whatever it asks for. */
  readonly everyMin: number
  readonly brake: BrakeLimits
  /** Throws if this checker is no longer active. Called right before every harmful action. */
  assertActive(): void
  onChange(change: CheckChange): void
}

/** A change of an instance's check status. */
export interface CheckChange {
  readonly service: string
  readonly id: string
  readonly status: CheckStatus
  readonly note: string
  /** It would be critical, but the brake on mass eviction delays that. */
  readonly held: boolean
}

interface CheckedInstance {
  readonly key: Key
  readonly service: string
  readonly id: string
  readonly token: Token
  readonly lease: LeaseId
  readonly check: Check
  readonly checkJson: string
  state: CheckState
  note: string
  /** The last published result. */
  published: string
  due: number
  busy: boolean
  /** For a ttl check: the count of reports, and when the last one was seen. */
  reports: number
  reportedAt: number
  /** Until when the brake delays that it is critical. */
  heldUntil: number
  /** Its lease expired. It is checked until then, because it may only be disconnected. */
  goneUntil: number | undefined
  isRevoked: boolean
}

const FIRST_CHECK_MS = 2000
const JITTER = 0.1
const NOTE_GONE = 'its lease has ended, and '

/** The schedule of an active checker: when each instance is checked, and what follows. */
export class CheckSchedule {
  /** Resolves when all instances are known; rejects if it is stopped before or not allowed. */
  readonly ready: Promise<void>
  readonly #client: Client
  readonly #options: CheckScheduleOptions
  readonly #services: View
  readonly #health: View
  readonly #results: HealthResults
  readonly #instances = new Map<Key, CheckedInstance>()
  readonly #brakes = new Map<string, Brake>()
  readonly #probing = new Set<AbortController>()
  #timer: Timer | undefined = undefined
  #isReady = false
  #stopped = false

  constructor(client: Client, options: CheckScheduleOptions) {
    this.#client = client
    this.#options = options
    const below = options.service === undefined ? '' : `${options.service}/`
    this.#health = client.view(`health/${below}`)
    this.#services = client.view(`${SERVICES}${below}`, (keys, ended) => this.#refresh(keys, ended))
    this.#results = new HealthResults(client, () => options.assertActive())
    // Earlier results are read before any instance is checked.
    this.ready = Promise.all([this.#services.ready, this.#health.ready]).then(() => {
      this.#isReady = true
      this.#refresh(new Set(this.#services.keys()), [])
    })
    this.ready.catch(() => {})
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#services.close()
    this.#health.close()
    this.#results.stop()
    for (const probing of this.#probing) probing.abort()
  }

  #refresh(keys: ReadonlySet<Key>, ended: readonly Event[]): void {
    if (!this.#isReady || this.#stopped) return
    for (const key of keys) this.#refreshKey(key, ended)
    this.#schedule()
  }

  #refreshKey(key: Key, ended: readonly Event[]): void {
    const parts = partsOfKey(key)
    const [entry] = this.#services.places(key)
    const old = this.#instances.get(key)
    const description = parseDescription(entry?.value)
    if (parts === undefined) return
    if (entry === undefined && old !== undefined) {
      const end = ended.find(({ token }) => token === old.token)?.end
      const isSilent = end === undefined || end.reason === 'expired'
      if (isSilent && old.check.url !== undefined) this.#checkAfterLapse(old)
      else this.#forget(old)
      return
    }
    const check = description?.check
    if (entry === undefined || check === undefined) {
      if (old !== undefined) this.#forget(old)
      return
    }
    const reports = description?.report?.count ?? 0
    const checkJson = JSON.stringify(check)
    const { token, lease } = entry
    if (old?.token === token && old.checkJson === checkJson) {
      this.#recordReport(old, reports)
      return
    }
    this.#admit({ ...parts, key, token, lease, check, checkJson, reports })
  }

  #admit(
    one: Pick<
      CheckedInstance,
      'key' | 'service' | 'id' | 'token' | 'lease' | 'check' | 'checkJson' | 'reports'
    >,
  ): void {
    const now = this.#client.clock.now()
    const before = newestHealth(this.#health.places(healthKey(one.service, one.id)))
    const known = before?.of === one.token ? before : undefined
    const { check } = one
    const first = Math.min(this.#every(check), FIRST_CHECK_MS) * this.#client.random.next()
    const instance: CheckedInstance = {
      ...one,
      state: { status: known?.status ?? check.initially, against: 0 },
      note: known?.note ?? '',
      published: '',
      due: now + (check.ttl ?? first),
      busy: false,
      reportedAt: now,
      heldUntil: -Infinity,
      goneUntil: undefined,
      isRevoked: false,
    }
    this.#instances.set(one.key, instance)
    this.#brakeOf(one.service).forgive(one.id)
    if (known !== undefined) this.#publish(instance)
  }

  #recordReport(instance: CheckedInstance, reports: number): void {
    if (reports === instance.reports || instance.check.ttl === undefined) return
    instance.reports = reports
    instance.reportedAt = this.#client.clock.now()
    instance.due = instance.reportedAt + instance.check.ttl
    this.#conclude(instance, { status: 'passing', note: '' })
  }

  /**
   * Its lease expired. Watchers may keep showing it if many others vanished too, so it is checked
   * once more and soon, to show whether it is dead.
   */
  #checkAfterLapse(instance: CheckedInstance): void {
    const now = this.#client.clock.now()
    instance.goneUntil ??= now + this.#options.brake.hold
    if (instance.goneUntil <= now) this.#forget(instance)
    else instance.due = now
  }

  #forget(instance: CheckedInstance): void {
    this.#instances.delete(instance.key)
    this.#results.drop(healthKey(instance.service, instance.id))
  }

  #every(check: Check): number {
    return Math.max(check.every, this.#options.everyMin)
  }

  #schedule(): void {
    this.#timer?.cancel()
    const { clock } = this.#client
    const now = clock.now()
    let next = Infinity
    const due: CheckedInstance[] = []
    for (const instance of this.#instances.values()) {
      if (instance.busy) continue
      if (instance.due > now) next = Math.min(next, instance.due)
      else due.push(instance)
    }
    // The longest overdue goes first, so that none is left out if there are too many.
    due.sort((a, b) => a.due - b.due)
    for (const instance of due) {
      if (this.#probing.size < this.#options.concurrency) void this.#check(instance)
    }
    this.#timer = clock.timer(next, () => this.#schedule())
  }

  async #check(instance: CheckedInstance): Promise<void> {
    const { clock, random } = this.#client
    const { check, goneUntil } = instance
    if (goneUntil !== undefined && goneUntil <= clock.now()) {
      this.#forget(instance)
      return
    }
    if (check.url === undefined) {
      instance.due = Infinity
      this.#conclude(instance, { status: 'critical', note: 'it did not report in time' })
      return
    }
    instance.busy = true
    const result = await this.#probe(check.url, check.timeout)
    instance.busy = false
    if (this.#stopped) return
    const rest = this.#every(check) * (1 + JITTER * (2 * random.next() - 1))
    instance.due = Math.min(clock.now() + rest, instance.goneUntil ?? Infinity)
    // It may have been replaced or removed meanwhile.
    if (this.#instances.get(instance.key) === instance) this.#conclude(instance, result)
    this.#schedule()
  }

  /** One probe. After the timeout it counts as failed, whatever the probe does then. */
  async #probe(url: string, timeout: number): Promise<ProbeResult> {
    const { clock } = this.#client
    const probing = new AbortController()
    this.#probing.add(probing)
    const overdue = new Promise<ProbeResult>((resolve) => {
      const late = { status: 'critical', note: `no answer within ${timeout} ms` } as const
      probing.signal.addEventListener('abort', () => resolve(late))
    })
    const timer = clock.timer(clock.now() + timeout, () => probing.abort())
    try {
      return await Promise.race([
        this.#options.probe(targetOf('check', url), probing.signal),
        overdue,
      ])
    } catch (error) {
      return { status: 'critical', note: `the probe failed: ${String(error).slice(0, 100)}` }
    } finally {
      timer.cancel()
      this.#probing.delete(probing)
    }
  }

  #conclude(instance: CheckedInstance, { status, note }: ProbeResult): void {
    const { check, goneUntil, state, service, id } = instance
    const brake = this.#brakeOf(service)
    const isStrict = check.url === undefined || goneUntil !== undefined
    instance.state = nextState(state, status, isStrict ? { down: 1, up: 1 } : check)
    if (instance.state.status === status) instance.note = note
    if (instance.state.status !== 'critical') brake.forgive(id)
    else if (state.status !== 'critical' && goneUntil === undefined) {
      const now = this.#client.clock.now()
      instance.heldUntil = brake.lose(id, now, this.#living(service)) ?? -Infinity
    }
    this.#publish(instance)
  }

  /** How many instances of a service are not critical. */
  #living(service: string): number {
    let count = 0
    for (const instance of this.#instances.values()) {
      if (instance.service === service && instance.state.status !== 'critical') count++
    }
    return count
  }

  #publish(instance: CheckedInstance): void {
    const { service, id, token, state, goneUntil } = instance
    // An instance whose lease has ended too is dead: no delay.
    const held =
      state.status === 'critical' &&
      goneUntil === undefined &&
      instance.heldUntil > this.#client.clock.now()
    const status = held ? 'warning' : state.status
    const about = goneUntil === undefined ? '' : NOTE_GONE
    const note = held
      ? `its check fails (${instance.note}), but so do many others: delayed`
      : `${instance.note && about}${instance.note}`
    const json = healthJson({ status, note, of: token })
    this.#results.set(healthKey(service, id), json)
    if (json !== instance.published) {
      instance.published = json
      this.#emit({ service, id, status, note, held }, instance.key)
    }
    // The end of the delay must be noticed even if no check is due then.
    if (held) instance.due = Math.min(instance.due, instance.heldUntil)
    if (status === 'critical' && instance.check.onCritical === 'revoke') void this.#revoke(instance)
  }

  #emit(change: CheckChange, key: Key): void {
    this.#options.onChange(change)
    const level = change.status === 'passing' ? 'info' : 'warn'
    const detail = change.note || `its check is ${change.status}`
    this.#client.emit({ recipe: 'registry', event: change.status, key, detail, level })
  }

  async #revoke(instance: CheckedInstance): Promise<void> {
    if (instance.isRevoked || instance.goneUntil !== undefined) return
    instance.isRevoked = true
    try {
      this.#options.assertActive()
      const why = `its health check is critical: ${instance.note}`.slice(0, 256)
      const target = { lease: instance.lease }
      await this.#client.store.revoke({ target, by: this.#client.holder, why })
    } catch {
      // The next failed check tries again.
      instance.isRevoked = false
    }
  }

  #brakeOf(service: string): Brake {
    let brake = this.#brakes.get(service)
    if (brake === undefined) {
      brake = new Brake(this.#options.brake)
      this.#brakes.set(service, brake)
    }
    return brake
  }
}
