/** Units of requests in words: `2 pictures · 61.5 s of sound`. Pure. */
import { exactCount } from './number.js'

/** After the count of one, and of several. */
const NAMES: Readonly<Record<string, readonly [one: string, several: string]>> = {
  image: ['picture', 'pictures'],
  audio_second: ['s of sound', 's of sound'],
  character: ['character', 'characters'],
  page: ['page', 'pages'],
  search: ['search', 'searches'],
  document: ['document', 'documents'],
  line: ['line', 'lines'],
  cached_audio: ['cached token of sound', 'cached tokens of sound'],
  cached_image: ['cached token of pictures', 'cached tokens of pictures'],
  input_audio: ['token of sound read', 'tokens of sound read'],
  input_image: ['token of pictures read', 'tokens of pictures read'],
  input_video: ['token of videos read', 'tokens of videos read'],
  output_audio: ['token of sound made', 'tokens of sound made'],
  output_image: ['token of pictures made', 'tokens of pictures made'],
}

/** The column `units` of a request, or the units of sums as a text, in words; empty for none. */
export function unitsText(units: string): string {
  const pairs = units === '' ? [] : units.split(' ').map((pair) => pair.split('='))
  return countsText(pairs.map(([unit = '', text = '']) => [unit, Number(text)]))
}

/** Counts by unit in words. */
export function countsText(counts: readonly (readonly [unit: string, count: number])[]): string {
  return counts
    .map(([unit, count]) => {
      const [one, several] = NAMES[unit] ?? [unit, unit]
      const text = Number.isInteger(count) ? exactCount(count) : String(count)
      return `${text} ${count === 1 ? one : several}`
    })
    .join(' · ')
}
