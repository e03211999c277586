export { putAnswer, putEnd, takeAnswer, takeEnd } from './answers.ts'
export { ByteReader, ByteWriter } from './bytes.ts'
export { decodeRecords, putLabels, RecordEncoder, takeLabels } from './records.ts'
