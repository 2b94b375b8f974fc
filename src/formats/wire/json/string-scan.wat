;; Finds what ends or interrupts a run of ordinary characters in JSON strings, eight bytes at a time.
;; JavaScript has no fast integers of 64 bits. `npm run generate` compiles this file into
;; string-scan-program.ts; string-scan.ts calls it.
(module
  ;; Bytes 0 to 3 have the number of escapes that the last call skipped; from byte 8 on are 1 MiB of a body. The rest
  ;; exists so that the last eight bytes can be read from any place.
  (memory (export "memory") 17)

  ;; At 1,100,000 + CHARACTER is 1 if a backslash and this character are an escape: " / \ b f n r t
  (data (i32.const 1100034) "\01")
  (data (i32.const 1100047) "\01")
  (data (i32.const 1100092) "\01")
  (data (i32.const 1100098) "\01")
  (data (i32.const 1100102) "\01")
  (data (i32.const 1100110) "\01")
  (data (i32.const 1100114) "\01")
  (data (i32.const 1100116) "\01")

  ;; The first place from $at on, and before $end, of a quote, of a control character, or of a backslash that begins
  ;; anything but an escape of two characters; $end if there is none. Skips the escapes of two characters.
  (func (export "next_special") (param $at i32) (param $end i32) (result i32)
    (local $word i64)
    (local $found i64)
    (local $skipped i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $word (i64.load align=1 (local.get $at)))
        ;; Sets the highest bit of the first special byte, and of no byte before it: the subtraction sets it for a byte
        ;; below 32, and for a byte that is 0 after the exclusive or with quotes or with backslashes.
        (local.set $found
          (i64.and
            (i64.and
              (i64.or
                (i64.sub (local.get $word) (i64.const 0x2020202020202020))
                (i64.or
                  (i64.sub
                    (i64.xor (local.get $word) (i64.const 0x2222222222222222))
                    (i64.const 0x0101010101010101))
                  (i64.sub
                    (i64.xor (local.get $word) (i64.const 0x5c5c5c5c5c5c5c5c))
                    (i64.const 0x0101010101010101))))
              (i64.xor (local.get $word) (i64.const -1)))
            (i64.const 0x8080808080808080)))
        (if (i64.eqz (local.get $found))
          (then
            (local.set $at (i32.add (local.get $at) (i32.const 8)))
            (br $next)))
        (local.set $at
          (i32.add
            (local.get $at)
            (i32.wrap_i64 (i64.shr_u (i64.ctz (local.get $found)) (i64.const 3)))))
        ;; The escape must end before $end.
        (br_if $done (i32.ge_u (i32.add (local.get $at) (i32.const 1)) (local.get $end)))
        (br_if $done (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x5c)))
        (br_if $done (i32.eqz (i32.load8_u offset=1100000 (i32.load8_u offset=1 (local.get $at)))))
        (local.set $skipped (i32.add (local.get $skipped) (i32.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 2)))
        (br $next)))
    (i32.store (i32.const 0) (local.get $skipped))
    (if (result i32) (i32.lt_u (local.get $at) (local.get $end))
      (then (local.get $at))
      (else (local.get $end))))
)
