/** `sluice whoami`: what the programs of the person who signed in used, and what is left. */
import { Argument } from '@commander-js/extra-typings'
import { arrayOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import { declare } from '../command.js'
import { table } from '../print-table-or-json.js'
import { processTerminal, type Terminal } from '../with-store.js'
import { readOwnUsage } from './login-client.js'
import { reported, URL_HELP, urlOf } from './login.js'
import { validToken } from './valid-token.js'

/** `sluice whoami`. */
export function whoamiCommand(terminal: Terminal = processTerminal) {
  return declare({
    name: 'whoami',
    summary: 'show what your programs used at a gateway, and what you have left',
    description: `
Prints who you are at the gateway to which 'sluice login' signed you in, what your programs used today and this
month (UTC), and what is left of each limit that holds for you. The page /dashboard/me shows the same.`,
    exitStatus: "0 success, 1 no token or no answer: run 'sluice login', 2 wrong usage.",
    example: 'sluice whoami https://llm.example.com',
  })
    .addArgument(new Argument('[URL]', URL_HELP))
    .option('--json', 'print JSON')
    .action(async (url, { json }) => {
      process.exitCode = await reported(terminal, async () => {
        const gateway = urlOf(url)
        const usage = await readOwnUsage(gateway, await validToken(gateway))
        terminal.out(json === true ? JSON.stringify(usage, undefined, 2) : textOf(usage))
        return 0
      })
    })
}

function textOf(usage: JsonObject): string {
  const sums = (['today', 'month'] as const).map((name) => {
    return [name === 'today' ? 'today' : 'this month', ...sumCells(objectOf(usage[name]))]
  })
  const models = arrayOf(usage['models'])
    .filter(isObject)
    .map((each) => [`  ${stringOf(each['model']) ?? ''}`, ...sumCells(each)])
  const head = ['', 'requests', 'failed', 'input tokens', 'output tokens', 'cost', 'unpriced']
  const limits = arrayOf(usage['limits'])
    .filter(isObject)
    .map((each) => [
      stringOf(each['limit']) ?? '',
      ...['amount', 'used', 'remaining'].map((name) => String(numberOf(each[name]) ?? '')),
      stringOf(each['resets_at']) ?? '',
      stringOf(each['counts_since']) ?? '',
    ])
  const shown = ['limit', 'amount', 'used', 'left', 'resets', 'counts since']
  const ofLimits = limits.some((cells) => cells.at(-1) !== '') ? shown : shown.slice(0, -1)
  return [
    `${stringOf(usage['email']) ?? ''}, account ${stringOf(usage['account']) ?? ''}`,
    '',
    table([head, ...sums, ...models]),
    ...(limits.length === 0
      ? []
      : ['', table([ofLimits, ...limits.map((cells) => cells.slice(0, ofLimits.length))])]),
  ].join('\n')
}

function sumCells(sum: JsonObject): string[] {
  const counts = ['requests', 'failed', 'input_tokens', 'output_tokens'].map((name) => {
    return String(numberOf(sum[name]) ?? 0)
  })
  return [...counts, `$${stringOf(sum['cost_usd']) ?? ''}`, String(numberOf(sum['unpriced_requests']) ?? 0)]
}
