/**
 * Phrases that the project's text does not use, each with the plain word for it, and a scan of files for
 * them. Identifiers are split at their humps, so `wasTold` is found like "was told". Run as a program, it
 * prints the findings of the folders that its arguments name.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** A phrase to avoid. The pattern is matched against lower-case text. */
interface StiltedPhrase {
  readonly pattern: RegExp
  readonly instead: string
}

/** A place in a file; `line` counts from 1. */
export interface Finding {
  readonly path: string
  readonly line: number
  readonly found: string
  readonly instead: string
}

/** Words with their plain equivalent. */
const WORDS: readonly (readonly [words: string, instead: string])[] = [
  ['told|untold', 'reported, sent, or the subject that acts'],
  ['said|unsaid', 'reported, stated, received'],
  ['says', 'states, contains, is'],
  ['knows', 'contains, reads, depends on'],
  ['asks', 'requests, sends, needs'],
  ['wants', 'needs, requires'],
  ['learns|learnt|learned', 'reads, receives'],
  ['speaks?|spoke|spoken', 'uses, sends, supports the format'],
  ['believes?|believed|disbelieved', 'accepts, trusts, uses'],
  ['hears?|heard', 'receives, received'],
  ['remembers?|remembered|forgets|forgotten|forgot', 'keeps, caches, drops'],
  ['nobody|somebody|anybody|whoever|whomever', 'no client, no caller, the caller that'],
  ['leftovers?', 'remaining, drained'],
  ['pieces?', 'chunk, fragment, part'],
  ['dies|died|dead|(?<!keep )alive', 'exits, exited, closed, running'],
  ['stands|stood', 'is'],
  ['lies', 'is'],
  ['books?|booked', 'ledger, recorded'],
  ['reckons?|reckoned|reckoning', 'calculate, estimate'],
  ['mends?|mended|mending', 'fix, repair'],
  ['patience', 'time limit'],
  ['whence|thence|hence|hitherto|lest|albeit|thereof|therein|wherein|whereby|ought', 'plain words'],
  ['whatever|whichever', 'any'],
  ['strangers?', 'another process, an unknown client'],
  ['riddles?', 'plain words'],
]

const PHRASES: readonly StiltedPhrase[] = [
  ...WORDS.map(([words, instead]) => ({ pattern: new RegExp(`\\b(?:${words})\\b`), instead })),
  { pattern: /^\W*where (?!to\b|is\b|are\b|does\b|do\b|can\b)/, instead: 'if, when' },
  { pattern: /[.;:] where (?!to\b|is\b|are\b|does\b|do\b|can\b)/, instead: 'if, when' },
  { pattern: /\b(?:is|are|was|were|be|been) asked\b/, instead: 'receives the request' },
  { pattern: /\b(?:is|are|was|were|be|been) met\b/, instead: 'occurs' },
  { pattern: /\b(?:is|are|was|were|be) tried again\b/, instead: 'is retried' },
  { pattern: /\b(?:is|are|was|were|be) (?:broken off|cut short)\b/, instead: 'is truncated' },
  {
    pattern: /\ball the same\b|\bin vain\b|\bwithout a word\b|\bfor good\b/,
    instead: 'plain words',
  },
  {
    pattern: /\banother look\b|\bat a glance\b|\bunasked\b|\bof its own accord\b/,
    instead: 'plain words',
  },
  {
    pattern: /\b(?:the most|the least) that\b|\bat the (?:most|least)\b/,
    instead: 'maximum, at most',
  },
  { pattern: /\bmay be had\b|\bto be had\b|\bto speak of\b/, instead: 'is available' },
  { pattern: /\bhas its say\b|\bhas (?:his|its) way\b|\blets? go\b/, instead: 'plain words' },
  {
    pattern: /\b(?:and|or) the like\b|\bsuch (?:a one|as it)\b|\ba thing\b/,
    instead: 'name the thing',
  },
  {
    pattern: /\bnothing but\b|\banything but\b|\bfor want of\b|\bbut for\b|\bsave for\b/,
    instead: 'only, except',
  },
  {
    pattern: /\bdoes not matter\b|\bno matter\b|\bmakes? nothing of\b/,
    instead: 'is ignored, regardless',
  },
  { pattern: /\bgives? way\b|\bkeeps? (?:it|them) waiting\b|\brun over\b/, instead: 'plain words' },
  {
    pattern: /\bas it (?:came|comes|stands|is|was)\b|\bas they (?:came|come|stand|are|were)\b/,
    instead: 'unchanged',
  },
  { pattern: /\bone after (?:another|the other)\b/, instead: 'in sequence' },
  { pattern: /\bin the words of\b|\bby chance\b|\bnot one more\b/, instead: 'plain words' },
  { pattern: /\bso (?:many|much)\b(?! that)/, instead: 'this number of' },
  { pattern: /\bwhat (?:came|comes|became|flowed)\b/, instead: 'name the thing' },
  { pattern: /\bhowever (?:it|they|many)\b/, instead: 'regardless of, for every' },
  { pattern: /\bby and by\b|\bonce and for all\b|\bonce more\b/, instead: 'again, gradually' },
]

const READ = new Set(
  '.ts .tsx .js .mjs .md .css .html .lua .sql .yaml .yml .sh .py .service .conf .tpl'.split(' '),
)
/** Recorded or generated text, this list, and the pages whose subject is the list. */
const SKIPPED =
  /stilted-phrases|\/node_modules\/|\/transcripts\/[^/]+\/.*\.(?:json|txt|sse)$|LICENSE|package-lock/

const SYSTEMD_DIRECTIVE = /^Wants=.*/

/** Findings of one file's text. */
export function findStiltedPhrases(path: string, text: string): Finding[] {
  return text.split('\n').flatMap((line, index) => {
    const plain = line
      .replace(SYSTEMD_DIRECTIVE, '')
      // The name of a key in Redis, which stores have.
      .replace(/:told`/, '')
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .replace(/[_-]/g, ' ')
      .toLowerCase()
    return PHRASES.flatMap(({ pattern, instead }) => {
      const found = pattern.exec(plain)?.[0]
      return found === undefined ? [] : [{ path, line: index + 1, found: found.trim(), instead }]
    })
  })
}

/** Findings of a file, or of every text file below a folder. Throws if the path does not exist. */
export function findStiltedPhrasesBelow(path: string): Finding[] {
  if (statSync(path).isFile()) return scanFile(path)
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => join(path, name))
    .filter((file) => statSync(file).isFile())
    .flatMap(scanFile)
}

function scanFile(path: string): Finding[] {
  if (!READ.has(extname(path)) || SKIPPED.test(path)) return []
  return findStiltedPhrases(path, readFileSync(path, 'utf8'))
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const findings = process.argv.slice(2).flatMap(findStiltedPhrasesBelow)
  for (const { path, line, found, instead } of findings) {
    process.stdout.write(`${path}:${String(line)}: "${found}" (instead: ${instead})\n`)
  }
  process.stdout.write(`${String(findings.length)} findings\n`)
}
