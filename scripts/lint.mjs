/**
 * `npm run lint [-- PATH...]`: ESLint over the repository, with a cache in `build/` of what it found in each
 * file. Rules that need types may find something in a file that has not changed, so they are not cached:
 * tsgolint checks all files, and ESLint again reads those in which it finds something and those that switch a
 * rule off.
 */
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { ESLint } from 'eslint'
import { typedFindings } from '../eslint.config.js'

const SWITCH = 'eslint-' + 'disable'
const paths = process.argv.slice(2).length === 0 ? ['.'] : process.argv.slice(2)
const { files, ruleNames } = typedFindings(paths)
const off = {
  linterOptions: { reportUnusedDisableDirectives: 'off' },
  rules: Object.fromEntries(ruleNames.map((name) => [name, 'off'])),
}
const cached = new ESLint({
  cache: true,
  cacheStrategy: 'content',
  cacheLocation: 'build/.cache/eslint/',
  overrideConfig: [{ ...off, files: ['**/*.{ts,tsx}'] }],
})
const first = await cached.lintFiles(paths)
const again = first
  .map(({ filePath }) => filePath)
  .filter((path) => files.has(path) || readFileSync(path, 'utf8').includes(SWITCH))
const whole = new ESLint()
const second = new Map((await whole.lintFiles(again)).map((result) => [result.filePath, result]))
const results = first.map((result) => second.get(result.filePath) ?? result)
const formatter = await whole.loadFormatter('stylish')
process.stdout.write(await formatter.format(results))
process.exitCode = results.some(({ errorCount }) => errorCount > 0) ? 1 : 0
