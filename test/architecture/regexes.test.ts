/**
 * Goal: every regular expression takes time linear in its input.
 * Method: eslint-plugin-regexp finds most others; here each expression of the sources runs on repetitions of
 * the characters that it matches. An expression that is not linear takes seconds. Repetitions of two
 * characters are tried with the expressions of changed files, and with a sixteenth of the others each day.
 */
import t from 'tap'
import ts from 'typescript'
import { isToday } from '../helpers/long-suite.js'
import { changedPaths } from '../runner/repository-files.js'
import { filesBelow } from './source-tree.js'

const TEXT_CHARS = 12_000
/** A linear expression takes well below 1 ms, a quadratic one 100 ms and more. */
const MOST_MS = 40
const TRIES = 3
/** Characters of each class, in addition to those in the expression. */
const CLASSES = ['a', '0', ' ', '"']
const MAX_ALPHABET = 8
/** Files that join escaped literals by `|`, which is linear in the text. */
const BUILT = new Set(['hide-secrets.ts'])

interface Found {
  readonly where: string
  readonly regex: RegExp
}

function regexesIn(path: string, text: string): Found[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: Found[] = []
  const add = (node: ts.Node, pattern: string, flags: string): void => {
    const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1
    found.push({ where: `${path}:${String(line)}`, regex: new RegExp(pattern, flags) })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/')
      add(node, node.text.slice(1, end), node.text.slice(end + 1))
    } else if (ts.isNewExpression(node) && node.expression.getText() === 'RegExp') {
      const [pattern, flags] = node.arguments ?? []
      if (pattern === undefined || !ts.isStringLiteralLike(pattern)) {
        if (BUILT.has(path)) return
        throw new Error(`${path}: an expression that is put together cannot be checked`)
      }
      add(node, pattern.text, flags !== undefined && ts.isStringLiteralLike(flags) ? flags.text : '')
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Repetitions of one character, of the whole expression's, and if `withPairs` of two characters. */
function textsFor({ source }: RegExp, withPairs: boolean): string[] {
  const own = Array.from(source.replace(/\\[a-zA-Z]|[[\](){}^$.*+?|]/g, ' ')).filter((each) => each !== ' ')
  const alphabet = [...new Set([...CLASSES, ...own])].slice(0, MAX_ALPHABET)
  const pairs = withPairs ? alphabet.flatMap((one) => alphabet.map((other) => one + other)) : []
  const word = own.join('').slice(0, 40)
  return [...alphabet, ...pairs, word === '' ? 'x' : word].flatMap((unit) => {
    const long = unit.repeat(Math.ceil(TEXT_CHARS / unit.length))
    return [`${long}\0`]
  })
}

function slowest(regex: RegExp, withPairs: boolean): { text: string; ms: number } {
  let worst = { text: '', ms: 0 }
  for (const text of textsFor(regex, withPairs)) {
    let best = Infinity
    for (let tries = 0; tries < TRIES && best > MOST_MS; tries += 1) {
      const began = performance.now()
      text.replace(regex, '')
      best = Math.min(best, performance.now() - began)
    }
    if (best > worst.ms) worst = { text: text.slice(0, 20), ms: best }
    if (worst.ms > MOST_MS) return worst
  }
  return worst
}

void t.test('every expression of the sources is linear', (t) => {
  const files = ['.ts', '.tsx'].flatMap((extension) => filesBelow('src', extension))
  const found = files.flatMap(({ path, text }) => regexesIn(path, text))
  t.ok(found.length > 100, `${String(found.length)} expressions`)
  const changed = changedPaths()
  for (const [index, { where, regex }] of found.entries()) {
    const isChanged = changed?.includes(`src/${where.replace(/:\d+$/, '')}`) ?? true
    const { text, ms } = slowest(regex, isChanged || isToday(index, 16))
    if (ms > MOST_MS) t.fail(`${where}: ${ms.toFixed(0)} ms for repetitions of ${JSON.stringify(text)}`)
  }
  t.end()
})

void t.test('an expression that is not linear is found', (t) => {
  const quadratic = [/a+$/, /"[^"\\]*(?:\\.[^"\\]*)*"/gs, /(?:a|b)*c/, /a.*z/]
  for (const regex of quadratic) t.ok(slowest(regex, true).ms > MOST_MS, String(regex))
  t.end()
})
