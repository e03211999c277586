import { type Ask, askText } from './asks.ts'
import { isoTime } from './hold-note.ts'
import type { HoldRecord } from './hold-record.ts'

export interface AgentNotice {
  readonly about: 'asked-back' | 'your-turn' | 'lost' | 'ceiling'
  readonly hold?: string | undefined
  readonly agent?: string | undefined
  readonly text: string
}

/** Somebody asks for these holds back. */
export function askNotices(open: readonly HoldRecord[], asks: readonly Ask[]): AgentNotice[] {
  return asks.map((ask) => {
    const { handle: hold, note } = open.find((record) => record.note.ref === ask.ref)!
    return { about: 'asked-back', hold, agent: note.agent, text: askText(ask, note.for) }
  })
}

/** What has happened to holds and was not yet told under their handles. `turn`: see `Ceilings`. */
export function changeNotices(records: readonly HoldRecord[], turn: number): AgentNotice[] {
  const notices: AgentNotice[] = []
  for (const { handle: hold, note, state, isReported, why, heldAt } of records) {
    if (isReported) continue
    const about = { hold, agent: note.agent }
    const what = note.for.join(', ')
    if (state === 'lost') {
      const text = `You lost ${what} (${note.purpose}): ${why}. Stop changing it. Take it again before you continue`
      notices.push({ about: 'lost', ...about, text })
    } else if (state === 'held') {
      const by = isoTime(heldAt! + turn)
      const text = `It is your turn: you hold ${what} now. Call wait with this hold before ${by}, or it is released`
      notices.push({ about: 'your-turn', ...about, text })
    }
  }
  return notices
}
