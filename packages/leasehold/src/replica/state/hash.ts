/** A running 32-bit hash of numbers, strings and bytes. */
export class Hash {
  #value = 0

  /** From 0 to 2^32 - 1. */
  get value(): number {
    return this.#value >>> 0
  }

  set value(value: number) {
    this.#value = value
  }

  /** A step of the 32-bit FNV-1a hash, and a rotation so that high bits affect low ones. */
  mix(word: number): void {
    const hash = Math.imul(this.#value ^ word, 0x01000193)
    this.#value = (hash << 13) | (hash >>> 19)
  }

  /** Mixes in any number: its integer part in two halves, and its fraction. */
  number(value: number): void {
    const whole = Math.floor(value)
    this.mix(whole | 0)
    this.mix((whole / 4_294_967_296) | 0)
    if (whole !== value) this.mix(((value - whole) * 4_294_967_296) | 0)
  }

  string(value: string): void {
    this.mix(value.length)
    for (let at = 0; at < value.length; at++) this.mix(value.charCodeAt(at))
  }

  /** Mixes in four bytes at a time. */
  bytes(bytes: Uint8Array): void {
    const { length } = bytes
    const whole = length - (length % 4)
    let value = this.#value
    for (let at = 0; at < whole; at += 4) {
      const word =
        bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
      const hash = Math.imul(value ^ word, 0x01000193)
      value = (hash << 13) | (hash >>> 19)
    }
    this.#value = value
    for (let at = whole; at < length; at++) this.mix(bytes[at]!)
  }
}
