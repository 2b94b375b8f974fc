import { defineConfig } from 'vite'

/** The dashboard's page: one folder of static files, served below `/dashboard/` by the gateway itself. */
export default defineConfig({
  root: 'src/dashboard/web',
  base: '/dashboard/',
  build: {
    outDir: '../../../dist/dashboard/web',
    emptyOutDir: true,
    target: 'es2022',
    // Under `default-src 'none'` nothing is inline: no data in styles, no preload script in the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      // `use client` at the head of a component library's files means nothing to a page without a server.
      onwarn(warning, warn) {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') warn(warning)
      },
    },
  },
  esbuild: { legalComments: 'none' },
})
