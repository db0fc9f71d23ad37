/* SPDX-License-Identifier: GPL-2.0 */
/* Types that the kernel's interface and the helpers' headers are written in. */
#ifndef PELT_KERNELTYPES_TYPES_H
#define PELT_KERNELTYPES_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

#endif
