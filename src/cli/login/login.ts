/** `sluice login`, `sluice token` and `sluice logout`: the sign-in of a person at a gateway. */
import { Argument } from '@commander-js/extra-typings'
import { spawn } from 'node:child_process'
import { isLoopback } from '../../http/private-addresses.js'
import { checkedUrl, gatewayUrl } from '../connect/connect.js'
import { declare, UsageError } from '../command.js'
import { processTerminal, type Terminal } from '../with-store.js'
import { awaitApproval, beginLogin, LoginError, revokeTokens } from './login-client.js'
import { readLogins, withLock, writeLogin } from './login-file.js'
import { validToken } from './valid-token.js'

/** What the argument of these commands is. */
export const URL_HELP =
  'the gateway without a path (default: the variable SLUICE_URL, else the one gateway that you signed in to, else http://localhost:8080)'
const FILE = '$XDG_CONFIG_HOME/sluice/login.json'

/** `sluice login`. */
export function loginCommand(terminal: Terminal = processTerminal) {
  return declare({
    name: 'login',
    summary: 'sign in to a gateway, for the programs on this machine',
    description: `
Opens a page of the gateway, on which you sign in with the identity provider and approve the code that this
command prints. Programs then get short-lived tokens of you by 'sluice token'; 'sluice connect CLIENT --login'
writes that command into their settings. The tokens are in ${FILE}, readable by you alone.`,
    exitStatus: '0 signed in, 1 denied, expired or no answer, 2 wrong usage.',
    example: 'sluice login https://llm.example.com',
  })
    .addArgument(new Argument('[URL]', URL_HELP))
    .option('--account <ACCOUNT>', 'the account that the programs act for; the page may choose another one')
    .option('--no-browser', 'print the address of the page only')
    .action(async (url, { account, browser }) => {
      process.exitCode = await reported(terminal, () => login(urlOf(url), { account, browser, terminal }))
    })
}

/** `sluice token`. */
export function tokenCommand(terminal: Terminal = processTerminal) {
  return declare({
    name: 'token',
    summary: 'print a token of the person who signed in',
    description: `
Prints one valid access token and nothing else, for the helper command of a client. Renews the token if it
expires soon.`,
    exitStatus: "0 success, 1 no token: run 'sluice login', 2 wrong usage.",
    example: 'sluice token https://llm.example.com',
  })
    .addArgument(new Argument('[URL]', URL_HELP))
    .action(async (url) => {
      process.exitCode = await reported(terminal, async () => {
        terminal.out(await validToken(urlOf(url)))
        return 0
      })
    })
}

/** `sluice logout`. */
export function logoutCommand(terminal: Terminal = processTerminal) {
  return declare({
    name: 'logout',
    summary: 'end the sign-in at a gateway',
    description: `
Ends the sign-in of 'sluice login' at the gateway, so that its tokens are refused within a second, and removes
them from ${FILE}.`,
    exitStatus: '0 success, 1 the gateway does not answer: its tokens expire by themselves, 2 wrong usage.',
    example: 'sluice logout https://llm.example.com',
  })
    .addArgument(new Argument('[URL]', URL_HELP))
    .action(async (url) => {
      process.exitCode = await reported(terminal, () => logout(urlOf(url), terminal))
    })
}

/** The gateway of an argument. Throws `UsageError`. */
export function urlOf(argument: string | undefined): string {
  const url = argument === undefined ? defaultUrl() : checkedUrl('URL', argument)
  const { protocol, hostname } = new URL(url)
  if (protocol === 'http:' && !isLoopback(hostname)) {
    throw new UsageError('URL must start with https:// (http:// is allowed for loopback): tokens go there')
  }
  return url
}

function defaultUrl(): string {
  const [only, other] = readLogins().keys()
  const { SLUICE_URL: named = '' } = process.env
  return named === '' && only !== undefined && other === undefined ? only : gatewayUrl(null)
}

interface LoginOptions {
  readonly account: string | undefined
  readonly browser: boolean
  readonly terminal: Terminal
}

async function login(url: string, { account, browser, terminal }: LoginOptions): Promise<number> {
  const waiting = await beginLogin(url)
  const page = new URL(waiting.page)
  if (account !== undefined) page.searchParams.set('account', account)
  terminal.out(`Open ${page.href}`)
  terminal.out(`and approve the code ${waiting.userCode}`)
  if (browser) openBrowser(page.href)
  const entry = await awaitApproval(url, waiting)
  await withLock(() => Promise.resolve(writeLogin(url, entry)))
  terminal.out(`Signed in to ${url} as ${entry.email}`)
  terminal.out(`What your programs use: sluice whoami, or ${url}/dashboard/me`)
  return 0
}

async function logout(url: string, terminal: Terminal): Promise<number> {
  return withLock(async () => {
    const entry = readLogins().get(url)
    if (entry === undefined) {
      terminal.out(`Not signed in to ${url}`)
      return 0
    }
    writeLogin(url, null)
    await revokeTokens(url, entry)
    terminal.out(`Signed out of ${url}`)
    return 0
  })
}

/** Opens the page if this machine has a browser; its address is printed in any case. */
function openBrowser(page: string): void {
  const { platform, env } = process
  if (platform === 'linux' && (env['DISPLAY'] ?? env['WAYLAND_DISPLAY'] ?? '') === '') return
  const [command, args] =
    platform === 'darwin'
      ? ['open', [page]]
      : platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', page]]
        : ['xdg-open', [page]]
  const child = spawn(command, args, { stdio: 'ignore', detached: true })
  child.on('error', () => undefined)
  child.unref()
}

/** The exit status of the work, or of a `LoginError`, which it prints. */
export async function reported(terminal: Terminal, work: () => Promise<number>): Promise<number> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof LoginError)) throw error
    terminal.err(`sluice: ${error.message}`)
    return 1
  }
}
