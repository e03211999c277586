import type { Client, View } from '../../client/index.ts'
import type { Event, Key, LeaseId, Timer, Token } from '../../port/index.ts'
import { Brake, type BrakeLimits } from './brake.ts'
import type { Check, CheckStatus } from './check.ts'
import { targetOf } from './check-policy.ts'
import { type CheckState, nextState } from './check-state.ts'
import { parseDescription } from './description.ts'
import { healthKey, newestHealth, partsOfKey, SERVICES, textOfHealth } from './instance.ts'
import type { Probe, ProbeResult } from './probe.ts'
import { Results } from './results.ts'

export interface RoundsPlan {
  /** All services if not given. */
  readonly service: string | undefined
  readonly probe: Probe
  readonly concurrency: number
  /** Nobody is checked more often, whatever they ask for. */
  readonly everyMin: number
  readonly brake: BrakeLimits
  /** Throws where the duty was lost: asked right before anybody is harmed. */
  assertOnDuty(): void
  tell(news: CheckNews): void
}

/** What the checks of an instance have come to; told when it changes. */
export interface CheckNews {
  readonly service: string
  readonly id: string
  readonly status: CheckStatus
  readonly note: string
  /** It would be critical, but the brake on mass eviction holds that back. */
  readonly held: boolean
}

/** An instance that is checked. */
interface Patient {
  readonly key: Key
  readonly service: string
  readonly id: string
  readonly token: Token
  readonly lease: LeaseId
  readonly check: Check
  readonly checkText: string
  state: CheckState
  note: string
  /** What was told of it last. */
  told: string
  due: number
  busy: boolean
  /** For a ttl check: the last report, and when it was seen here. */
  reports: number
  reportedAt: number
  /** Until when the brake holds back that it is critical. */
  heldUntil: number
  /** Its lease has ended without a word: it is looked at until then, to tell the dead from the lost. */
  goneUntil: number | undefined
  isRevoked: boolean
}

const FIRST_CHECK_MS = 2000
const JITTER = 0.1
const NOTE_GONE = 'its lease is over, and '

/** The rounds of a checker that is on duty: who is checked when, and what becomes of it. */
export class Rounds {
  /** Fulfilled when it sees everything; rejected if it is stopped before, or may not. */
  readonly ready: Promise<void>
  readonly #client: Client
  readonly #plan: RoundsPlan
  readonly #services: View
  readonly #health: View
  readonly #results: Results
  readonly #patients = new Map<Key, Patient>()
  readonly #brakes = new Map<string, Brake>()
  readonly #probing = new Set<AbortController>()
  #timer: Timer | undefined = undefined
  #isReady = false
  #stopped = false

  constructor(client: Client, plan: RoundsPlan) {
    this.#client = client
    this.#plan = plan
    const below = plan.service === undefined ? '' : `${plan.service}/`
    this.#health = client.view(`health/${below}`)
    this.#services = client.view(`${SERVICES}${below}`, (keys, ended) => this.#look(keys, ended))
    this.#results = new Results(client, () => plan.assertOnDuty())
    // What was found before is known before anybody is looked at.
    this.ready = Promise.all([this.#services.ready, this.#health.ready]).then(() => {
      this.#isReady = true
      this.#look(new Set(this.#services.keys()), [])
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

  #look(keys: ReadonlySet<Key>, ended: readonly Event[]): void {
    if (!this.#isReady || this.#stopped) return
    for (const key of keys) this.#lookAt(key, ended)
    this.#schedule()
  }

  #lookAt(key: Key, ended: readonly Event[]): void {
    const parts = partsOfKey(key)
    const [entry] = this.#services.places(key)
    const old = this.#patients.get(key)
    const description = parseDescription(entry?.value)
    if (parts === undefined) return
    if (entry === undefined && old !== undefined) {
      const end = ended.find(({ token }) => token === old.token)?.end
      const isSilent = end === undefined || end.reason === 'expired'
      if (isSilent && old.check.url !== undefined) this.#seeOff(old)
      else this.#forget(old)
      return
    }
    const check = description?.check
    if (entry === undefined || check === undefined) {
      if (old !== undefined) this.#forget(old)
      return
    }
    const reports = description?.report?.count ?? 0
    const checkText = JSON.stringify(check)
    if (old?.token === entry.token && old.checkText === checkText) {
      this.#hear(old, reports)
      return
    }
    this.#admit({
      ...parts,
      key,
      token: entry.token,
      lease: entry.lease,
      check,
      checkText,
      reports,
    })
  }

  #admit(
    one: Pick<
      Patient,
      'key' | 'service' | 'id' | 'token' | 'lease' | 'check' | 'checkText' | 'reports'
    >,
  ): void {
    const now = this.#client.clock.now()
    const before = newestHealth(this.#health.places(healthKey(one.service, one.id)))
    const known = before?.of === one.token ? before : undefined
    const { check } = one
    const first = Math.min(this.#every(check), FIRST_CHECK_MS) * this.#client.random.next()
    const patient: Patient = {
      ...one,
      state: { status: known?.status ?? check.initially, against: 0 },
      note: known?.note ?? '',
      told: '',
      due: now + (check.ttl ?? first),
      busy: false,
      reportedAt: now,
      heldUntil: -Infinity,
      goneUntil: undefined,
      isRevoked: false,
    }
    this.#patients.set(one.key, patient)
    this.#brakeOf(one.service).forgive(one.id)
    if (known !== undefined) this.#publish(patient)
  }

  /** A ttl check passes with every report. */
  #hear(patient: Patient, reports: number): void {
    if (reports === patient.reports || patient.check.ttl === undefined) return
    patient.reports = reports
    patient.reportedAt = this.#client.clock.now()
    patient.due = patient.reportedAt + patient.check.ttl
    this.#conclude(patient, { status: 'passing', note: '' })
  }

  /**
   * Its lease is over, and those who watch may go on showing it, if many went with it: it is looked
   * at once more, and soon, so that they know whether it is dead.
   */
  #seeOff(patient: Patient): void {
    const now = this.#client.clock.now()
    patient.goneUntil ??= now + this.#plan.brake.hold
    if (patient.goneUntil <= now) this.#forget(patient)
    else patient.due = now
  }

  #forget(patient: Patient): void {
    this.#patients.delete(patient.key)
    this.#results.drop(healthKey(patient.service, patient.id))
  }

  #every(check: Check): number {
    return Math.max(check.every, this.#plan.everyMin)
  }

  #schedule(): void {
    this.#timer?.cancel()
    const { clock } = this.#client
    const now = clock.now()
    let next = Infinity
    const due: Patient[] = []
    for (const patient of this.#patients.values()) {
      if (patient.busy) continue
      if (patient.due > now) next = Math.min(next, patient.due)
      else due.push(patient)
    }
    // Whoever has waited longest is next, so that nobody is left out where there are too many.
    due.sort((a, b) => a.due - b.due)
    for (const patient of due) {
      if (this.#probing.size < this.#plan.concurrency) void this.#check(patient)
    }
    this.#timer = clock.timer(next, () => this.#schedule())
  }

  async #check(patient: Patient): Promise<void> {
    const { clock, random } = this.#client
    const { check, goneUntil } = patient
    if (goneUntil !== undefined && goneUntil <= clock.now()) {
      this.#forget(patient)
      return
    }
    if (check.url === undefined) {
      patient.due = Infinity
      this.#conclude(patient, { status: 'critical', note: 'it has not reported in time' })
      return
    }
    patient.busy = true
    const result = await this.#probe(check.url, check.timeout)
    patient.busy = false
    if (this.#stopped) return
    const rest = this.#every(check) * (1 + JITTER * (2 * random.next() - 1))
    patient.due = Math.min(clock.now() + rest, patient.goneUntil ?? Infinity)
    // It may have been replaced or have left meanwhile.
    if (this.#patients.get(patient.key) === patient) this.#conclude(patient, result)
    this.#schedule()
  }

  /** One look, which counts as failed when its time is over, whatever the probe does then. */
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
      return await Promise.race([this.#plan.probe(targetOf('check', url), probing.signal), overdue])
    } catch (error) {
      return { status: 'critical', note: `the probe failed: ${String(error).slice(0, 100)}` }
    } finally {
      timer.cancel()
      this.#probing.delete(probing)
    }
  }

  #conclude(patient: Patient, { status, note }: ProbeResult): void {
    const { check, goneUntil, state, service, id } = patient
    const brake = this.#brakeOf(service)
    const isStrict = check.url === undefined || goneUntil !== undefined
    patient.state = nextState(state, status, isStrict ? { down: 1, up: 1 } : check)
    if (patient.state.status === status) patient.note = note
    if (patient.state.status !== 'critical') brake.forgive(id)
    else if (state.status !== 'critical' && goneUntil === undefined) {
      const now = this.#client.clock.now()
      patient.heldUntil = brake.lose(id, now, this.#living(service)) ?? -Infinity
    }
    this.#publish(patient)
  }

  /** How many of a service are not critical. */
  #living(service: string): number {
    let count = 0
    for (const patient of this.#patients.values()) {
      if (patient.service === service && patient.state.status !== 'critical') count++
    }
    return count
  }

  #publish(patient: Patient): void {
    const { service, id, token, state, goneUntil } = patient
    // What is dead for two reasons is not held back.
    const held =
      state.status === 'critical' &&
      goneUntil === undefined &&
      patient.heldUntil > this.#client.clock.now()
    const status = held ? 'warning' : state.status
    const about = goneUntil === undefined ? '' : NOTE_GONE
    const note = held
      ? `its check fails (${patient.note}), as those of many others do: held back`
      : `${patient.note && about}${patient.note}`
    const text = textOfHealth({ status, note, of: token })
    this.#results.set(healthKey(service, id), text)
    if (text !== patient.told) {
      patient.told = text
      this.#tell({ service, id, status, note, held }, patient.key)
    }
    // When it is held back no more, that must be seen even if nobody looks at it then.
    if (held) patient.due = Math.min(patient.due, patient.heldUntil)
    if (status === 'critical' && patient.check.onCritical === 'revoke') void this.#revoke(patient)
  }

  #tell(news: CheckNews, key: Key): void {
    this.#plan.tell(news)
    const level = news.status === 'passing' ? 'info' : 'warn'
    const detail = news.note || `its check is ${news.status}`
    this.#client.emit({ recipe: 'registry', event: news.status, key, detail, level })
  }

  async #revoke(patient: Patient): Promise<void> {
    if (patient.isRevoked || patient.goneUntil !== undefined) return
    patient.isRevoked = true
    try {
      this.#plan.assertOnDuty()
      const why = `its health check is critical: ${patient.note}`.slice(0, 256)
      const target = { lease: patient.lease }
      await this.#client.store.revoke({ target, by: this.#client.holder, why })
    } catch {
      // Not done, or not known to be: the next check that fails tries again.
      patient.isRevoked = false
    }
  }

  #brakeOf(service: string): Brake {
    let brake = this.#brakes.get(service)
    if (brake === undefined) {
      brake = new Brake(this.#plan.brake)
      this.#brakes.set(service, brake)
    }
    return brake
  }
}
