/** `npm run check`: ESLint beside Prettier and the types. Prints their output; exits 1 if one of them fails. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

async function run(command, ...args) {
  const child = spawn(command, args, { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

const linting = run('eslint', '.')
const isFormatted = await run('prettier', '--check', '.')
const isTyped = isFormatted && (await run('npm', 'run', '--silent', 'types'))
const isLinted = await linting
process.exit(isFormatted && isTyped && isLinted ? 0 : 1)
