/**
 * `npm run check`: ESLint beside Prettier and the types. Prints their output; exits 1 if one of them fails.
 * `--before-tests` also builds the gateway and finds or installs what the tests need, at the same time.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const beforeTests = process.argv.includes('--before-tests')

async function run(command, ...args) {
  const child = spawn(command, args, { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

/** Runs commands in sequence, until one fails. */
async function inSequence(...commands) {
  for (const command of commands) if (!(await run(...command))) return false
  return true
}

// On two cores: ESLint takes as long as everything else together, and the set-up mostly waits.
const results = await Promise.all([
  run('eslint', '.'),
  inSequence(
    ['prettier', '--check', '.'],
    ['npm', 'run', '--silent', 'types'],
    ...(beforeTests ? [['npm', 'run', '--silent', 'build']] : []),
  ),
  ...(beforeTests
    ? [inSequence(['npm', 'run', '--silent', 'transpile'], ['node', 'build/test/setup.js'])]
    : []),
])
process.exit(results.every(Boolean) ? 0 : 1)
