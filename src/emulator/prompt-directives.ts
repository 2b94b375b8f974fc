/** Directives in a prompt to the emulator: `[[words: 50]]`, `[[pace: 20]]`, `[[fault: cut bytes=120]]`. */
import type { JsonObject } from '../base/json.js'
import { malformed } from '../errors.js'
import { faultOf, type Fault } from './faults/fault-table.js'

/** The directives of a prompt, and the prompt without them. */
interface Directions {
  readonly text: string
  readonly faults: readonly Fault[]
  /** Number of words in the output. */
  readonly words: number | undefined
  /** Milliseconds between the events of a stream. */
  readonly pace: number | undefined
}

const DIRECTIVE = /\[\[\s*(fault|words|pace)\s*:([^[\]]{0,500})\]\]/g

/** Reads `[[fault: cut bytes=120]]`, `[[words: 50]]`, `[[pace: 20]]`. Throws as `faultOf` does. */
export function directionsOf(prompt: string): Directions {
  if (!prompt.includes('[[')) {
    return { text: prompt, faults: [], words: undefined, pace: undefined }
  }
  const faults: Fault[] = []
  let words: number | undefined
  let pace: number | undefined
  const text = prompt.replace(DIRECTIVE, (_all, name: string, setting: string) => {
    const rest = setting.trim()
    if (name === 'fault') {
      faults.push(faultFromWords(rest))
    } else {
      const number = Number(rest)
      if (!Number.isInteger(number) || number < 0 || number > 5_000_000) {
        throw malformed(`directive '${name}' must be a whole number, not '${rest}'`)
      }
      words = name === 'words' ? number : words
      pace = name === 'pace' ? number : pace
    }
    return ''
  })
  return { text: text.trim(), faults, words, pace }
}

/** Reads `cut bytes=120 mode=reset`. Throws as `faultOf` does. */
export function faultFromWords(words: string): Fault {
  const [kind = '', ...settings] = words.split(/\s+/)
  const value: JsonObject = { kind }
  for (const setting of settings) {
    const at = setting.indexOf('=')
    if (at < 1) {
      throw malformed(`fault setting '${setting}' must read name=value`)
    }
    value[setting.slice(0, at)] = setting.slice(at + 1)
  }
  return faultOf(value)
}
