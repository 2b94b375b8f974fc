import js from '@eslint/js'
import reactHooks from 'eslint-plugin-react-hooks'
import regexp from 'eslint-plugin-regexp'
import tseslint from 'typescript-eslint'
import { withFastRules } from './scripts/typed-rules.mjs'

const TYPED = {
  '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
  '@typescript-eslint/no-confusing-void-expression': 'off',
}
const strict = tseslint.configs.strictTypeChecked
const configured = Object.assign({}, ...strict.map(({ rules }) => rules), TYPED)
const fast = withFastRules(tseslint.plugin, configured)

/** House rules that a machine can check; `test/architecture` checks the others. */
export default tseslint.config(
  { ignores: ['build', 'dist', '.tap', 'node_modules'] },
  js.configs.recommended,
  ...strict.map(({ plugins, ...config }) => ({
    ...config,
    ...(plugins && { plugins: { '@typescript-eslint': fast ?? tseslint.plugin } }),
    files: ['**/*.{ts,tsx}'],
  })),
  {
    files: ['**/*.{ts,tsx}'],
    languageOptions: {
      parserOptions: { projectService: fast === null, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      ...TYPED,
      'max-lines': ['error', { max: 600, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 80, skipBlankLines: true, skipComments: true }],
      'max-params': ['error', 5],
      'no-restricted-syntax': [
        'error',
        {
          selector: "ImportDeclaration[source.value='zod'] > ImportSpecifier[imported.name='z']",
          message: "Write `import * as z from 'zod'`: the bundle then omits zod's translations.",
        },
      ],
      'max-len': [
        'error',
        {
          code: 110,
          ignoreStrings: true,
          ignoreTemplateLiterals: true,
          ignoreRegExpLiterals: true,
          ignoreUrls: true,
        },
      ],
      'require-atomic-updates': ['error', { allowProperties: true }],
      eqeqeq: 'error',
      'no-console': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    plugins: { regexp },
    rules: {
      // A text of the client or the upstream meets these expressions: none may take longer than its length.
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': [
        'error',
        { report: 'certain', ignoreSticky: false, ignorePartial: true },
      ],
    },
  },
  {
    files: ['src/dashboard/web/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks },
    rules: reactHooks.configs.recommended.rules,
  },
  {
    files: ['src/cli/**/*.ts', 'bench/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['examples/**/*.mjs', 'scripts/**/*.mjs'],
    languageOptions: {
      globals: Object.fromEntries(
        ['console', 'process', 'TextEncoder', 'fetch', 'URLSearchParams'].map((name) => [name, 'readonly']),
      ),
    },
  },
  {
    // The newer builder makes Kubernetes resources, which Grafana 12 does not provision from files.
    files: ['grafana/**/*.ts'],
    rules: {
      '@typescript-eslint/no-deprecated': 'off',
      'max-lines-per-function': 'off',
    },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: { 'max-lines-per-function': 'off' },
  },
)
