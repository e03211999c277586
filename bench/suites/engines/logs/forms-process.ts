/** A process with a store of one form. On each message it locks and unlocks a number of keys. */
import { pairsPerSecond } from '../../parts/server/pairs.js'
import { type EngineName, FORMS, type FormName } from './open-form.js'

const [engine, form, port, inFlight] = process.argv.slice(2) as [
  EngineName,
  FormName,
  string,
  string,
]
const { pair } = await FORMS[engine][form](Number(port))
process.on('disconnect', () => process.exit())
process.on('message', async (pairs: number) => {
  await pairsPerSecond((key) => pair(`${process.pid}/${key}`), Number(inFlight), pairs)
  process.send!('done')
})
process.send!('ready')
