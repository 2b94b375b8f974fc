/** The token of the admin API, for commands that call a gateway: of a file, the environment, or an option. */
import { readFileSync } from 'node:fs'
import { codeWithAdvice } from '../store/file-access.js'
import { UsageError } from './command.js'

/** The texts of the options `--token-file` and `--token`, in the order of the help. */
export const TOKEN_FILE_HELP =
  'a file with its token; without it, the variable SLUICE_ADMIN_TOKEN (formerly SLUICE_TOKEN)'
export const TOKEN_HELP =
  'its token itself, which other users of this machine can see: use a file or the variable'

/** The values of the options. */
interface TokenOptions {
  readonly token?: string | undefined
  readonly tokenFile?: string | undefined
}

/** The token, or null if there is none. Throws `UsageError` for two tokens and for a file without one. */
export function adminTokenOf({ token, tokenFile }: TokenOptions): string | null {
  if (token !== undefined && tokenFile !== undefined) {
    throw new UsageError('--token-file and --token are for one token: remove --token')
  }
  if (tokenFile !== undefined) return tokenIn(tokenFile)
  const { SLUICE_ADMIN_TOKEN: named, SLUICE_TOKEN: former } = process.env
  return [token, named, former].find((each) => (each ?? '').trim() !== '')?.trim() ?? null
}

function tokenIn(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new UsageError(`--token-file: the file "${file}" cannot be read (${codeWithAdvice(error)})`)
  }
  if (/^\S+$/.test(text)) return text
  throw new UsageError(`--token-file: the file "${file}" must contain the token and nothing else`)
}
